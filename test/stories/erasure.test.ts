/** Addresses of mail that has left are erased: no file of the queue has them afterwards, but for mail that is still in the queue. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { RelayConfig } from '../../src/config/relay-config.ts'
import { createWorld } from '../../src/testkit/create-world.ts'

const CONFIG: RelayConfig = { returned_content_retention: '7d', session_transcripts: 'all' }

function folder(): string {
  const directory = mkdtempSync(join(tmpdir(), 'deferd-erasure-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return directory
}

/** The files of a folder that have a text, in any case. */
const filesWith = (directory: string, text: string): readonly string[] =>
  readdirSync(directory).filter((name) => readFileSync(join(directory, name)).toString('latin1').toLowerCase().includes(text))

test('no file of the queue has the address of a recipient, and others have theirs', async () => {
  const directory = folder()
  await using world = await createWorld({ config: CONFIG, store: { directory } })
  const far = world.destination('far.example')
  far.rejects('anna@far.example', '550 5.1.1 <anna@far.example>: no such user')
  for (let n = 0; n < 12; n++) {
    const to = n % 3 === 0 ? ['anna@far.example'] : n % 3 === 1 ? [`bob${n}@far.example`, 'Anna@far.example'] : [`bob${n}@far.example`]
    await world.submit({ from: 'boss@here.example', to, subject: `dear Anna ${n}`, text: 'x'.repeat(n * 2_000) })
  }
  await world.advance('1h')
  expect(filesWith(directory, 'anna@far.example')).not.toEqual([])
  expect(await world.erase('recipient', 'anna@far.example')).toMatchObject({ changed: 8 })
  expect(filesWith(directory, 'anna@far.example')).toEqual([])
  expect(filesWith(directory, 'bob1@far.example')).toEqual(['queue.db'])
  expect(filesWith(directory, 'boss@here.example')).toEqual(['queue.db'])
})

test('a sender is erased on demand, and mail in the queue stays as it is', async () => {
  const directory = folder()
  await using world = await createWorld({ config: CONFIG, store: { directory } })
  world.destination('slow.example').defers('eve@slow.example')
  await world.submit({ from: 'anna@here.example', to: 'bob@far.example' })
  const live = await world.submit({ from: 'anna@here.example', to: 'eve@slow.example' })
  await world.advance('1m')
  await world.erase('sender', 'anna@here.example')
  expect(filesWith(directory, 'anna@here.example')).not.toEqual([])
  world.destination('slow.example').recovers()
  await world.advance('1d')
  expect(world.attempts('eve@slow.example').at(-1)).toMatchObject({ queueId: live, outcome: 'delivered' })
  await world.erase('sender', 'anna@here.example')
  expect(filesWith(directory, 'anna@here.example')).toEqual([])
})
