import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CASES, type Case } from '../../../scripts/bench/cases.ts'
import { measure } from '../../../scripts/bench/load.ts'
import { lastCount, reasonAgainstClient, smtpSource, startSmtpSink } from '../../../scripts/bench/smtp-source.ts'
import { ONLY_SPEED } from '../../../scripts/bench/statistics.ts'

const MISSING = 'smtp-source and smtp-sink, which come with Postfix, are not installed'

function caseOf(name: string): Case {
  const found = CASES.find((load) => load.name === name)
  if (found === undefined) throw new Error(`no case ${name}`)
  return found
}

test('a case of smtp-source needs the programs of Postfix, another one does not', () => {
  const asked = (name: string): string | null => reasonAgainstClient(caseOf(name), '/nowhere:/dev')
  expect([asked('kept'), asked('smtp-source-kept'), asked('smtp-source-new')]).toEqual([null, MISSING, MISSING])
})

test('smtp-source gets the load of the case', () => {
  const sent = '-l 2048 -r 1'
  const addresses = '-f sender@load.test -t rcpt@sink.test 127.0.0.1:2525'
  const argsOf = (name: string): string => smtpSource(caseOf(name), 2525, 50).args.join(' ')
  expect(argsOf('smtp-source-kept')).toBe(`-s 20 -m 50 ${sent} -d ${addresses}`)
  expect(argsOf('smtp-source-new')).toBe(`-s 20 -m 50 ${sent} ${addresses}`)
  expect(argsOf('smtp-source-kept-100')).toBe(`-s 50 -m 50 ${sent} -d ${addresses}`)
})

test('the last complete count of smtp-sink is read', () => {
  expect(lastCount('sess=1 quit=0 mesg=9\rsess=2 quit=1 mesg=12\rsess=2 quit=2 mesg=1')).toBe(12)
  expect(lastCount('')).toBe(0)
})

const missing = reasonAgainstClient(caseOf('smtp-source-new'))

test.skipIf(missing !== null)(`smtp-sink counts what smtp-source sends${missing === null ? '' : ` (not run: ${missing})`}`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-smtp-source-'))
  const { signal } = new AbortController()
  const sink = await startSmtpSink(folder, signal)
  try {
    const relay = { name: 'smtp-sink', child: sink.child, port: sink.port }
    for (const name of ['smtp-source-kept', 'smtp-source-new']) {
      const { rate, ...measured } = await measure({ sink, folder, signal }, relay, caseOf(name), 30)
      expect(rate).toBeGreaterThan(0)
      expect(measured).toMatchObject({ ...ONLY_SPEED, rss: expect.any(Number) as number })
    }
    expect(sink.counts()).toEqual({ arrived: 60, refused: 0 })
  } finally {
    await sink.child.stop()
    rmSync(folder, { recursive: true })
  }
})
