/** Mail that `sendmail` submitted and no daemon has queued is listed as queue `maildrop`. */
import { chmodSync, linkSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { prepareMaildrop, submitToMaildrop } from '../../src/queue/intake/maildrop-writer.ts'
import { queue } from '../conformance/mail.ts'
import { NOW, Operator } from '../support/operator.ts'

let operator: Operator

const drop = (name = '') => join(operator.directory, 'maildrop', name)
const DAY = 86_400_000
const CONTENT = 'Subject: hi\r\n\r\nhi\r\n'
const submit = (name: string, sender: string, ...to: readonly string[]) =>
  submitToMaildrop(fs, operator.directory, {
    newName: () => name,
    envelope: { sender, recipients: to.map((address) => ({ address })) },
    content: Buffer.from(CONTENT),
  })

beforeEach(async () => {
  operator = new Operator()
  await prepareMaildrop(operator.directory)
  await operator.own((store) => queue(store, { at: NOW - 1_000, sender: 'queued@us.example' }))
  await submit('1-a', 'app@us.example', 'ann@far.example', 'bob@near.example')
  await submit('2-b', '', 'eve@far.example')
  writeFileSync(drop('incomplete'), 'x', { mode: 0o600 })
  // The times of files are those of the system.
  operator.clock.step(Date.now() + 60_000 - operator.clock.now())
})
afterEach(() => operator.leave())

const arrivalOf = (name: string): number => Math.floor(Number(statSync(drop(name), { bigint: true }).ctimeMs) / 1000)

const json = async (...argv: readonly string[]) =>
  (await operator.says(...argv))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { readonly queue_name: string; readonly queue_id: string; readonly sender: string })

const ids = async (...filters: readonly string[]) => (await json('queue', 'list', '--json', ...filters)).map(({ queue_id }) => queue_id)

describe('while no daemon runs', () => {
  test.each([[['queue', 'list', '--json']], [['postqueue', '-j']]])(
    '%j lists it before the queue, with the members of queued mail',
    async (argv) => {
      const [first, second, queued, ...more] = await json(...argv)
      const recipient = { destination: null, state: 'waiting', attempts: 0, next_attempt_time: null, last_status: null }
      expect(first).toEqual({
        queue_name: 'maildrop',
        queue_id: '1-a',
        arrival_time: arrivalOf('1-a'),
        message_size: CONTENT.length,
        forced_expire: false,
        sender: 'app@us.example',
        recipients: [
          { address: 'ann@far.example', ...recipient },
          { address: 'bob@near.example', ...recipient },
        ],
        expire_time: null,
        attempts: 0,
        next_attempt_time: null,
      })
      expect(Object.keys(queued ?? {})).toEqual(Object.keys(first ?? {}))
      expect([second, queued, more]).toMatchObject([
        { queue_name: 'maildrop', queue_id: '2-b', sender: 'MAILER-DAEMON' },
        { queue_name: 'incoming', sender: 'queued@us.example' },
        [],
      ])
    },
  )

  test.each([[['mailq']], [['postqueue', '-p']], [['sendmail', '-bp']]])('%j prints it as Postfix does', async (argv) => {
    const [heading, first, ...rest] = (await operator.says(...argv)).split('\n')
    expect(heading).toBe('----Queue ID----- --Size-- ---Arrival Time---- --Sender/Recipient------')
    expect(first).toMatch(/^1-a {15} {6}19 \w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d app@us\.example$/)
    expect(rest.slice(0, 5)).toEqual([
      `${' '.repeat(47)}ann@far.example`,
      `${' '.repeat(47)}bob@near.example`,
      '',
      expect.stringMatching(/^2-b .* MAILER-DAEMON$/) as string,
      `${' '.repeat(47)}eve@far.example`,
    ])
    expect(rest.slice(-2)).toEqual(['-- 0 Kbytes in 3 Requests.', ''])
  })

  test('queue list has a line for it, in a pipe and at a terminal', async () => {
    const [first] = (await operator.says('queue', 'list', '--tsv')).split('\n')
    expect(first?.split('\t')).toEqual(
      [
        '1-a',
        'maildrop',
        '19',
        new Date(arrivalOf('1-a') * 1000).toISOString().slice(0, 19),
        '0',
        '-',
        'app@us.example',
        'ann@far.example,bob@near.example',
        '',
      ].map((cell, i) => (i === 3 ? (expect.stringContaining(cell) as string) : cell)),
    )
    for (const columns of [80, 120]) {
      const { out } = await operator.run(['queue', 'list', '--queue', 'maildrop'], { columns })
      expect(out).toMatch(
        /^QUEUE ID [^\n]*\n1-a +maildrop [^\n]* app@us\.example → ann@far\.example \+1\n2-b +maildrop [^\n]*\n2 messages\n$/,
      )
    }
  })

  test('filters hold for it', async () => {
    expect(await ids('--queue', 'maildrop')).toEqual(['1-a', '2-b'])
    expect(await ids('--queue', 'maildrop', '--limit', '1')).toEqual(['1-a'])
    expect(await ids('--limit', '2')).toEqual(['1-a', '2-b'])
    expect(await ids('--limit', '3')).toHaveLength(3)
    expect(await ids('--sender', 'APP@*')).toEqual(['1-a'])
    expect(await ids('--sender', '<>')).toEqual(['2-b'])
    expect(await ids('--recipient', '*@near.example')).toEqual(['1-a'])
    expect(await ids('--queue', 'maildrop', '--older-than', '1h')).toEqual([])
    expect(await ids('--queue', 'maildrop', '--older-than', '1s')).toEqual(['1-a', '2-b'])
    expect(await ids('--queue', 'maildrop', '--destination', '*')).toEqual([])
    expect(await ids('--queue', 'maildrop', '--attempts-over', '0')).toEqual([])
    expect(await ids('--queue', 'incoming')).toHaveLength(1)
  })

  test('operations on the queue do not take it for a filter', async () => {
    expect(await operator.run(['queue', 'delete', '--queue', 'maildrop'])).toMatchObject({ code: 64 })
  })
})

describe('entries that could not be taken in for a day', () => {
  beforeEach(() => {
    mkdirSync(drop('folder'))
    chmodSync(drop('2-b'), 0o640)
    linkSync(drop('1-a'), join(operator.directory, 'second'))
    operator.clock.step(Date.now() + DAY + 60_000 - operator.clock.now())
  })

  test('are listed with the reason', async () => {
    const reason = (why: string) => `not taken in for a day: ${why}; owned by uid ${process.getuid?.()}`
    expect(await json('queue', 'list', '--json', '--queue', 'maildrop')).toMatchObject([
      { queue_id: '1-a', sender: '?', recipients: [], delay_reason: reason('it has a second name (hard link)') },
      { queue_id: '2-b', delay_reason: reason('it is not complete') },
      { queue_id: 'folder', delay_reason: reason('not a regular file') },
      { queue_id: 'incomplete', delay_reason: reason('it is not complete') },
    ])
    expect(await ids('--reply', 'hard link')).toEqual(['1-a'])
    expect(await ids('--reply', '*HARD*LINK*')).toEqual(['1-a'])
    expect(await ids('--reply', 'hard*link*')).toEqual([])
    expect(await operator.says('postqueue', '-p')).toContain(`(${reason('not a regular file')})\n`)
  })

  test('are a warning of check, as are refused files', async () => {
    mkdirSync(join(operator.directory, 'refused'))
    writeFileSync(join(operator.directory, 'refused', '1'), '')
    const { code, out } = await operator.run(['check', '--json'])
    const finding = out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { readonly what: string })
      .find(({ what }) => what === 'maildrop')
    expect([code, finding]).toMatchObject([0, { verdict: 'warning' }])
    expect(JSON.stringify(finding)).toMatch(
      /1-a \(not taken in for a day: .*2-b \(.*folder \(.* and 1 more, see .*; 1 refused file in .*refused: inspect and remove/,
    )
  })
})

test('mail that waits is no warning of check', async () => {
  expect(await operator.says('check')).toMatch(/^ok +maildrop +2 messages not taken in yet$/m)
})

test('without a maildrop nothing is missing', async () => {
  await fs.rm(drop(), { recursive: true })
  expect(await ids()).toHaveLength(1)
  expect(await operator.says('check')).not.toContain('maildrop')
})
