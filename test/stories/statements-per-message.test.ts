/** Times and limits of attempts cost mail without them no statement, nor do dialogues that are off: counted at SQLite, from the submission to the delivery or the return. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { countedStatements } from '../support/statement-count.ts'
import { costOfRcpt } from '../support/suppressed-recipients.ts'

const statements = countedStatements()

interface Cost {
  readonly statements: number
  readonly dialogues: number
}

const statementsWith = async (config: WorldOptions['config']): Promise<number> => (await costWith(config)).statements

/** Cost of the second of two equal messages, which needs nothing that is made once. */
async function costWith(config: WorldOptions['config'], to = ['ann@far.example', 'eve@busy.example']): Promise<Cost> {
  await using world = await createWorld({ config: config ?? {}, store: { directory: mkdtempSync(join(tmpdir(), 'deferd-statements-')) } })
  world.destination('busy.example').defers('*', '450 4.2.1 busy')
  const dialogues = async (): Promise<number> => (await world.reader.records.sessions.use()).count
  const story = async (): Promise<Cost> => {
    const [before, kept] = [statements(), await dialogues()]
    await world.submit({ to })
    await world.advance('20m')
    const made = statements() - before
    return { statements: made, dialogues: (await dialogues()) - kept }
  }
  await story()
  return await story()
}

test('mail that uses none of them makes the same statements with the parameters set as without', async () => {
  const off = await statementsWith({})
  expect(off).toBeGreaterThan(5)
  expect(await statementsWith({ smtpd_future_release_limit: '7d' })).toBe(off)
  expect(await statementsWith({ maximal_delivery_attempts: 9 })).toBe(off)
  expect(await statementsWith({ class: { normal: { weight: 10 }, bulk: { weight: 1 } } })).toBe(off)
  expect(await statementsWith({ fair_share: 'yes' })).toBe(off)
})

test('a dialogue costs a statement when it is kept, and none when it is off or the mail is delivered', async () => {
  const [off, failed] = [await costWith({ session_transcripts: 'no' }), await costWith({ session_transcripts: 'failed' })]
  expect(off.dialogues).toBe(0)
  expect(failed.dialogues).toBeGreaterThan(0)
  expect(failed.statements - off.statements).toBe(failed.dialogues)
  const good = ['ann@far.example']
  expect(await costWith({ session_transcripts: 'failed' }, good)).toEqual(await costWith({ session_transcripts: 'no' }, good))
})

test('RCPT of an address that is not suppressed costs no statement more beside 3,000 suppressed ones than beside none', async () => {
  const none = await costOfRcpt(0, statements)
  const many = await costOfRcpt(3_000, statements)
  expect(many.others).toBe(none.others)
  expect(many.withListed).toBeGreaterThan(many.others)
})
