/** Work by the calendar, in virtual time: a world begins on Thursday, 2026-01-01 at 00:00 UTC. */
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import nodemailer from 'nodemailer'
import { expect, test } from 'vitest'
import { ANY_ENTRY } from '../../src/store/records/audit-log.ts'
import { createWorld, type World } from '../../src/testkit/index.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { attentionIn } from '../support/attention.ts'
import { closeAtEnd } from '../support/open-worlds.ts'

const HOUR = 3_600_000

async function worldWith(
  schedule: Record<string, Record<string, string | number | readonly string[]>>,
  options: WorldOptions = {},
): Promise<World> {
  const world = await createWorld({ ...options, config: { ...options.config, schedule } })
  closeAtEnd(world)
  return world
}

const runsOf = (world: World, name: string) => world.reader.records.scheduleRuns.of(name)

const send = (world: World, to: string) =>
  nodemailer.createTransport(world.transport()).sendMail({ from: 'app@us.example', to, text: 'hi' })

test('a run is made at the times of its table, and by no other time', async () => {
  const world = await worldWith({ often: { at: '*/20 9-10 * * *', do: 'flush', destinations: '*' } })
  await world.advance('1d')
  const planned = (await runsOf(world, 'often')).map((run) => (run.planned % (24 * HOUR)) / 60_000)
  expect(planned).toEqual([540, 560, 580, 600, 620, 640])
})

test('a flush has deferred mail of matching destinations tried at once', async () => {
  const world = await worldWith({ morning: { at: '0 6 * * *', zone: 'Europe/Berlin', do: 'flush', destinations: ['*.example'] } })
  world.destination('slow.example').isDownFor('4h50m')
  await send(world, 'ann@slow.example')
  await world.advance('5h1s')
  expect(world.attempts('ann@slow.example').at(-1)).toMatchObject({ at: 5 * 3_600, outcome: 'delivered' })
  const [audited] = await world.reader.records.audit.before(ANY_ENTRY, { before: null, limit: 1 })
  expect(audited).toMatchObject({ who: 'schedule morning', action: 'schedule', arguments: 'morning', changed: 1 })
})

test('destinations are suspended and resumed, and those of an operator stay as they are', async () => {
  const world = await worldWith({
    night: { at: '0 1 * * *', do: 'suspend', destinations: ['a.example', 'b.example'], for: '12h' },
    day: { at: '0 5 * * *', do: 'resume', destinations: '*' },
  })
  await world.suspend('b.example')
  await world.advance('2h')
  const suspensions = async () =>
    (await world.reader.destinationRecords())
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, suspension }) => [name, suspension?.by])
  expect(await suspensions()).toEqual([
    ['a.example', 'schedule night'],
    ['b.example', 'operator'],
  ])
  await world.advance('4h')
  expect((await suspensions()).filter(([, by]) => by !== undefined)).toEqual([['b.example', 'operator']])
})

test('a report tells what happened since the last one', async () => {
  const world = await worldWith({ daily: { at: '0 7 * * *', do: 'report', notify: 'ops@us.example' } })
  world.destination('gone.example').defers('*', '450 4.2.1 mailbox is busy')
  await send(world, 'ann@fine.example')
  await send(world, 'bob@gone.example')
  await world.advance('7h1m')
  const [first] = world.mailbox('ops@us.example').mails()
  expect(first?.header('Subject')).toBe('Mail queue of deferd.example: 1 delivered, 1 waiting, needs attention')
  expect(first?.content).toContain('accepted                  2')
  await world.advance('1d')
  expect(world.mailbox('ops@us.example').mails().at(-1)?.content).toContain('accepted                  1')
})

test('a failed run is an event, needs attention, and is followed by the next one', async () => {
  const world = await worldWith({ copy: { at: '30 2 * * *', do: 'backup', to: '/nowhere/{date}.db' } })
  await world.advance('3h')
  const text = 'the queue of this world has no file: create the world with store: { directory }'
  expect(await world.events({ types: ['schedule.failed'] })).toMatchObject([
    { data: { schedule: 'copy', action: 'backup', planned_time: 1_767_234_600, text } },
  ])
  expect(await attentionIn(world)).toMatchObject([{ kind: 'schedule-failed', count: 1, why: `copy: ${text}` }])
  await world.advance('1d')
  expect(await runsOf(world, 'copy')).toHaveLength(2)
})

test('a step of the clock by ten years makes no missed run, and the next one at its time', async () => {
  const world = await worldWith({ hourly: { at: '0 * * * *', do: 'flush', destinations: '*' } })
  await world.advance('90m')
  world.stepClock('3650d')
  await world.advance('1h')
  const stepped = (await runsOf(world, 'hourly')).map(({ planned }) => planned)
  expect(stepped).toHaveLength(2)
  expect(stepped[1]).toBe(Date.parse('2035-12-30T02:00:00Z'))
  world.stepClock('-3650d')
  await world.advance('1h')
  expect((await runsOf(world, 'hourly')).map(({ planned }) => planned).slice(2)).toEqual([Date.parse('2026-01-01T03:00:00Z')])
})

test('a run is not made again when the clock is set back by some hours', async () => {
  const world = await worldWith({ hourly: { at: '0 * * * *', do: 'flush', destinations: '*' } })
  await world.advance('3h')
  world.stepClock('-2h')
  await world.advance('4h')
  expect((await runsOf(world, 'hourly')).map(({ planned }) => new Date(planned).getUTCHours())).toEqual([1, 2, 3, 4, 5])
})

test('runs that were missed while nothing ran are skipped', async () => {
  const world = await worldWith({ hourly: { at: '0 * * * *', do: 'flush', destinations: '*' } })
  await world.advance('30m')
  await world.crash({ downFor: '3h' })
  await world.advance('4h')
  expect((await runsOf(world, 'hourly')).map(({ planned }) => new Date(planned).getUTCHours())).toEqual([4])
})

test('the newest backups are kept, and only files that the table wrote are removed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'schedules-'))
  const world = await worldWith(
    { nightly: { at: '0 2 * * *', zone: 'Asia/Kathmandu', do: 'backup', to: join(folder, 'queue-{date}.db'), keep: 2 } },
    { store: { directory: mkdtempSync(join(tmpdir(), 'schedules-')) } },
  )
  writeFileSync(join(folder, 'queue-2025-12-01.db'), 'of somebody else')
  await world.advance('2d')
  expect(readdirSync(folder).toSorted()).toEqual(['queue-2025-12-01.db', 'queue-2026-01-02.db', 'queue-2026-01-03.db'])
  // A file in the place of one of the table is not of the table.
  writeFileSync(join(folder, 'queue-2026-01-02.db'), 'replaced')
  await world.advance('3d')
  expect(readdirSync(folder).toSorted()).toEqual([
    'queue-2025-12-01.db',
    'queue-2026-01-02.db',
    'queue-2026-01-05.db',
    'queue-2026-01-06.db',
  ])
})
