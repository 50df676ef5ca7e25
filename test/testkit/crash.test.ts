/** A killed relay leaves exactly the state that it has committed, at any moment. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { afterEach, describe, expect, test } from 'vitest'
import { createWorld, type World, type WorldOptions } from '../../src/testkit/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'deferd-crash-'))
let worlds: World[] = []
let count = 0

afterEach(async () => {
  for (const world of worlds) await world.close()
  worlds = []
})

async function start(store: WorldOptions['store']): Promise<World> {
  const world = await createWorld({ store })
  worlds.push(world)
  return world
}

const send = (world: World, to: string) => createTransport(world.transport()).sendMail({ from: 'app@us.example', to, text: 'hi' })

describe.each([
  ['in memory', () => 'memory' as const],
  ['in a file', () => ({ directory: mkdtempSync(join(folder, `${count++}-`)) })],
])('a queue %s', (_name, store) => {
  test('keeps its schedule through a crash', async () => {
    const world = await start(store())
    world.destination('slow.example').failsFirst(2)
    await send(world, 'ann@slow.example')
    await world.advance('100s')
    await world.crash()
    await world.settle()
    expect(world.recipient('ann@slow.example').attemptedAt).toEqual([0, 300, 900])
  })

  test('retries mail in delivery: the remote server has it twice after a crash behind the end of data', async () => {
    const world = await start(store())
    world.destination('slow.example').fails({ at: 'end-of-data', delay: '10s', first: 1 })
    await send(world, 'ann@slow.example')
    await world.advance('5s')
    await world.crash({ downFor: '1m' })
    await expect(send(world, 'bob@slow.example')).rejects.toThrow(/ECONNREFUSED/)
    await world.settle()
    expect(world.mailbox('ann@slow.example').mails()).toHaveLength(2)
    expect(world.history().events.filter(({ where, event }) => where === 'queue' && event.type === 'message.removed')).toHaveLength(1)
  })

  test('is read no more by the relay that was killed while it followed a step of the clock', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    try {
      const world = await start(store())
      for (let ticks = 0; ticks < 8; ticks++) {
        world.stepClock('1h')
        for (let tick = 0; tick < ticks; tick++) await Promise.resolve()
        await world.crash()
      }
      await world.advance('1s')
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', note)
    }
  })
})

test('a crash with SQLite in memory is refused', async () => {
  const world = await start('sqlite')
  await expect(world.crash()).rejects.toThrow(/directory/)
})

process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
