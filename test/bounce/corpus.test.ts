/**
 * The corpus of notices: composed notices equal the files of `corpus/`, and deferd's parser reads them. After an intended change,
 * `WRITE_CORPUS=1 npx vitest run test/bounce/corpus.test.ts` rewrites the files.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Dsn } from '../../src/bounce/dsn.ts'
import type { Notice } from '../../src/bounce/notice.ts'
import { parseNotice } from '../../src/bounce/dsn-parser.ts'
import { aMessage, expectValid, original, settingsOf, written } from '../support/notices.ts'
import { CORPUS, type CorpusEntry } from './corpus-table.ts'

const FOLDER = new URL('corpus/', import.meta.url)

async function compose({ kind, to, recipients, returns, message: facts, octets, overrides }: CorpusEntry): Promise<Dsn> {
  const settings = settingsOf(overrides)
  const message = aMessage(facts)
  const address = to === 'sender' ? message.sender : settings.rules.postmaster.bounce
  const from = to === 'sender' ? '' : settings.rules.doubleBounce.address
  const notice: Notice = { kind, to, address, from, recipients, returns }
  return written(notice, message, await original(octets, settings, returns), settings)
}

const ACTION = { failure: 'failed', delay: 'delayed' } as const

for (const one of CORPUS) {
  test(`${one.name}.eml`, async () => {
    const dsn = await compose(one)
    expectValid(dsn)
    const file = new URL(`${one.name}.eml`, FOLDER)
    if (process.env['WRITE_CORPUS'] === '1') writeFileSync(file, dsn.content)
    expect(Buffer.from(dsn.content).toString('latin1')).toBe(readFileSync(file, 'latin1'))

    const read = parseNotice(readFileSync(file))
    expect(read?.recipients.map(({ recipient }) => recipient)).toEqual(one.recipients.map(({ address }) => address))
    for (const [n, { action, status }] of (read?.recipients ?? []).entries()) {
      const local = one.recipients[n]?.destination.startsWith('lmtp:') === true
      expect(action).toBe(one.kind === 'success' ? (local ? 'delivered' : 'relayed') : ACTION[one.kind])
      expect(status).toBe(one.recipients[n]?.last?.status ?? '4.0.0')
    }
  })
}

test('the corpus has at least 60 notices, and no unlisted file', () => {
  expect(CORPUS.length).toBeGreaterThanOrEqual(60)
  expect(readdirSync(FOLDER).toSorted()).toEqual(CORPUS.map(({ name }) => `${name}.eml`).toSorted())
})
