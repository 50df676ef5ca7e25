/** Log lines of sessions, which must be those of Postfix: its log readers and fail2ban's filter look for them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { postfixLines } from '../../src/telemetry/log-records.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { openSmtpd, OUTSIDER, type RawClient } from '../support/smtpd-harness.ts'

const EHLO = 'EHLO x\r\n'
const RCPT = [EHLO, 'MAIL FROM:<a@b.example>\r\n', 'RCPT TO:<ann@far.example>\r\n']
const DATA = [...RCPT, 'DATA\r\n']
const LOST = 'lost connection after'

/** Lines of the log between the connect and the end of a session, without the client. */
const SESSIONS: readonly (readonly [sent: readonly string[], ...lines: readonly string[]])[] = [
  [[], `${LOST} CONNECT from C`, 'disconnect from C commands=0/0'],
  [['\r\n', ' \r\n'], `${LOST} CONNECT from C`, 'disconnect from C commands=0/0'],
  [['hElO x\r\n'], `${LOST} HELO from C`, 'disconnect from C helo=1 commands=1'],
  [[EHLO, 'FROB x\r\n'], `${LOST} UNKNOWN from C`, 'disconnect from C ehlo=1 unknown=0/1 commands=1/2'],
  [[EHLO, '\r\n'], `${LOST} EHLO from C`, 'disconnect from C ehlo=1 commands=1'],
  [DATA, `${LOST} DATA (0 bytes) from C`, 'disconnect from C ehlo=1 mail=1 rcpt=1 data=0/1 commands=3/4'],
  [[...DATA, 'Subject: x\r\n'], `${LOST} DATA (12 bytes) from C`, 'disconnect from C ehlo=1 mail=1 rcpt=1 data=0/1 commands=3/4'],
  [[...DATA, '\r\n.\r\n'], 'disconnect from C ehlo=1 mail=1 rcpt=1 data=1 commands=4'],
  [[...RCPT, 'BDAT 9\r\n', 'x'], `${LOST} BDAT (1 bytes) from C`, 'disconnect from C ehlo=1 mail=1 rcpt=1 bdat=0/1 commands=3/4'],
  [[...RCPT, 'BDAT 3\r\nx\r\n'], `${LOST} BDAT (3 bytes) from C`, 'disconnect from C ehlo=1 mail=1 rcpt=1 bdat=1 commands=4'],
  [[EHLO, 'BDAT 3\r\n', 'x'], `${LOST} BDAT from C`, 'disconnect from C ehlo=1 bdat=0/1 commands=1/2'],
  [
    [EHLO, 'STARTTLS\r\n'],
    'SSL_accept error from C: lost connection',
    `${LOST} STARTTLS from C`,
    'disconnect from C ehlo=1 starttls=0/1 commands=1/2',
  ],
  [
    [EHLO, 'STARTTLS\r\n', 'no handshake\r\n'],
    'SSL_accept error from C: wrong version number',
    `${LOST} STARTTLS from C`,
    'disconnect from C ehlo=1 starttls=0/1 commands=1/2',
  ],
  [['GET /a HTTP/1.1\r\nHost: x\r\n'], 'warning: non-SMTP command from C: GET /a HTTP/1.1', 'disconnect from C unknown=0/1 commands=0/1'],
  [[`EHLO x\r\nMAIL FROM:<>\r\n`], 'improper command pipelining after EHLO from C', 'disconnect from C ehlo=0/1 commands=0/1'],
  [
    [EHLO, 'bdat  10 FOO\x01\r\n'],
    'warning: NOQUEUE: malformed BDAT command syntax from C: bdat  10 FOO?',
    'disconnect from C ehlo=1 bdat=0/1 commands=1/2',
  ],
  [
    [EHLO, 'BDAT 0\r\n'],
    'warning: NOQUEUE: null BDAT request from C',
    `${LOST} BDAT from C`,
    'disconnect from C ehlo=1 bdat=0/1 commands=1/2',
  ],
  [
    [...RCPT, `BDAT 99999999 LAST\r\n`, 'x'],
    'warning: NOQUEUE: BDAT request from C exceeds message size limit',
    `${LOST} BDAT from C`,
    'disconnect from C ehlo=1 mail=1 rcpt=1 bdat=0/1 commands=3/4',
  ],
  [['HELO x\r\n', 'FOO\r\nBAR\r\n', 'QUIT\r\n'], 'disconnect from C helo=1 quit=1 unknown=0/2 commands=2/4'],
]

const folder = mkdtempSync(join(tmpdir(), 'deferd-session-log-'))
const [smtpd_tls_cert_file, smtpd_tls_key_file] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
writeFileSync(smtpd_tls_cert_file, CERTIFICATE)
writeFileSync(smtpd_tls_key_file, KEY)
afterAll(() => rmSync(folder, { recursive: true }))

async function play(client: RawClient, sent: readonly string[]): Promise<void> {
  await client.send(...sent)
  client.socket.destroy()
}

test('a session is logged as Postfix logs it', async () => {
  const world = await openSmtpd({
    relay_domains: ['far.example'],
    smtpd_tls_security_level: 'may',
    smtpd_tls_cert_file,
    smtpd_tls_key_file,
  })
  for (const [sent, ...lines] of SESSIONS) {
    const before = world.events.length
    await play(await world.connect(OUTSIDER), sent)
    await expect.poll(() => world.events.at(-1)?.kind).toBe('disconnected')
    const logged = world.events
      .slice(before)
      .filter(({ kind }) => kind === 'client-failure' || kind === 'disconnected')
      .flatMap((event) => postfixLines(event, { tlsStatus: false }).map(({ text }) => text.replace(`unknown[${OUTSIDER}]`, 'C')))
    expect(logged, JSON.stringify(sent)).toEqual(lines)
  }
})
