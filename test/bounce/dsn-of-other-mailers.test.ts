/** Notices that Postfix 3.7.11, Exim 4.96 and OpenSMTPD 6.8.0p2 sent, byte for byte. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseNotice, type ParsedNotice } from '../../src/bounce/dsn-parser.ts'

const received = (name: string): ParsedNotice | null => parseNotice(readFileSync(new URL(`other-mailers/${name}.eml`, import.meta.url)))

const refused = (recipient: string, code: number, status: string) => ({
  recipient,
  action: 'failed',
  status,
  diagnostic: `${code} 5.1.1 as you wish`,
  remoteMta: '127.0.0.1',
})

test.each([
  [
    'postfix-three',
    { recipients: [refused('550@x.test', 550, '5.1.1'), refused('551@x.test', 551, '5.1.1'), refused('552@y.test', 552, '5.1.1')] },
  ],
  [
    'postfix-headers-only',
    { envid: 'E9', recipients: [{ ...refused('553@x.test', 553, '5.1.1'), originalRecipient: 'rfc822;was@x.test' }] },
  ],
  ['postfix-global', { recipients: [refused('550-josé@x.test', 550, '5.1.1')] }],
  [
    'postfix-delay',
    { action: 'delayed', recipients: [{ recipient: '450@x.test', status: '4.1.1', willRetryUntil: Date.parse('2026-11-20T11:47:38Z') }] },
  ],
  [
    'postfix-relayed',
    {
      action: 'relayed',
      envid: 'Env+ID',
      recipients: [{ recipient: 'ok@x.test', originalRecipient: 'rfc822;orig+adr@x.test', status: '2.0.0' }],
    },
  ],
  // Exim reports 5.0.0 for every reply of the remote server.
  [
    'exim-three',
    { recipients: [refused('550@x.test', 550, '5.0.0'), refused('551@x.test', 551, '5.0.0'), refused('552@y.test', 552, '5.0.0')] },
  ],
  ['exim-delay', { action: 'delayed', recipients: [{ recipient: '450@x.test', status: '4.0.0', diagnostic: '450 4.1.1 as you wish' }] }],
  ['exim-local', { recipients: [{ recipient: 'nobody@exim.test', status: '5.0.0' }] }],
  ['exim-delivered', { action: 'delivered', envid: 'E3', recipients: [{ recipient: 'ann@exim.test', diagnosticType: 'x-exim' }] }],
  // No multipart/report, no diagnostics.
  [
    'opensmtpd-three',
    { recipients: ['552@y.test', '551@x.test', '550@x.test'].map((recipient) => ({ recipient, action: 'failed', status: '5.0.0' })) },
  ],
  ['opensmtpd-relayed', { action: 'relayed', recipients: [{ recipient: 'ok@x.test', status: '2.0.0' }] }],
])('%s', (name, said) => {
  const notice = received(name)
  const mta = name.split('-')[0]?.replace('opensmtpd', 'osmtpd')
  expect(notice).toMatchObject({ action: 'failed', reportingMta: `mx.${mta}.test`, ...said })
  expect(notice?.text).not.toBe('')
  expect(notice?.original).toContain(`Subject: ${mta} `)
})
