/** Mail from deferd to Postfix by BDAT (RFC 3030), and by DATA for comparison. */
import { mkdtempSync, rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { reasonToSkip } from '../support/required.ts'
import { deliveries, settled, submit } from './observe.ts'
import type { MailSituation } from './situations.ts'
import { startDeferd, startPair, type System } from './systems.ts'

const HEADER = 'Subject: hi\r\n\r\n'
const MAILS: readonly MailSituation[] = [
  { id: 'one line', content: `${HEADER}Hello.\r\n` },
  { id: 'no body', content: 'Subject: hi\r\n' },
  { id: 'lines of dots', content: `${HEADER}..\r\n...\r\n..a\r\n` },
  { id: '8-bit text', parameters: ' BODY=8BITMIME', content: `${HEADER}Grüße\r\n` },
  { id: 'several chunks', content: HEADER + 'A line of the third kind.\r\n'.repeat(6_000) },
  { id: 'exactly one chunk of 64 KiB', content: HEADER + `${'x'.repeat(62)}\r\n`.repeat(1_021) },
  { id: 'two recipients', rcpt: ['r@', 's@'], content: `${HEADER}Hello.\r\n` },
  { id: 'a refused recipient', rcpt: ['r@', '"a b c@'], content: `${HEADER}Hello.\r\n` },
]

const reason = reasonToSkip('interop', await postfixIsMissing())

/** Mail that a Postfix delivers to its sink when it is the next hop of deferd, and what its log tells of the sessions. */
async function throughPostfix(settings: Readonly<Record<string, string>>) {
  const folder = mkdtempSync('/tmp/deferd-chunking-')
  const pair = await startPair()
  const front: System = await startDeferd(folder, { settings: { relayhost: `[127.0.0.1]:${pair.postfix.port}`, ...settings } })
  try {
    for (const [n, mail] of MAILS.entries()) await submit(front, mail, n)
    await expect.poll(() => MAILS.filter(({ content }, n) => deliveries(pair.postfix, n, content).length === 0)).toEqual([])
    await settled([front, pair.postfix], 1_500)
    return {
      mails: MAILS.map(({ content }, n) => deliveries(pair.postfix, n, content)),
      sessions: pair.postfix.log().filter((line) => line.startsWith('smtpd: disconnect')),
      sent: front.log().filter((line) => line.includes('status=sent')).length,
    }
  } finally {
    await front.stop()
    await pair.stop()
    rmSync(folder, { recursive: true })
  }
}

test.skipIf(reason !== null)('Postfix takes the same mail by BDAT as by DATA', async () => {
  const [chunked, plain] = await Promise.all([throughPostfix({}), throughPostfix({ smtp_discard_ehlo_keywords: 'chunking' })])
  expect(chunked.sessions.join()).toMatch(/ bdat=\d+ /)
  expect(plain.sessions.join()).not.toContain('bdat=')
  expect(chunked.mails).toEqual(plain.mails)
  expect(chunked.mails.map((mails) => mails.length)).toEqual(MAILS.map(() => 1))
  expect(chunked.sent).toBe(plain.sent)
})
