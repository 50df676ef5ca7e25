/** Access restrictions: deferd and Postfix reply alike, and treat accepted mail alike. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { reasonToSkip } from '../support/required.ts'
import { ACCESS_SETTINGS, accessInputs, LOGIN_SETTINGS, loginInputs, TREATED, type AccessInput } from './access-inputs.ts'
import { play } from './dialogue.ts'
import { startPair, type Pair, type System } from './systems.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())
/** Recipients that are compared. */
const INPUTS = 250

/** Replies to MAIL and to each RCPT. */
async function repliesTo({ port }: System, { xclient, sender, recipients }: AccessInput): Promise<readonly string[]> {
  const lines = ['EHLO a.example', xclient, 'EHLO b.example', `MAIL FROM:<${sender}>`, ...recipients.map((one) => `RCPT TO:<${one}>`)]
  return play(port, lines, { quiet: 4 })
}

/**
 * Lines of smtpd about actions of restrictions. Postfix names the queue file after the first recipient, where deferd has none yet, and does
 * not log PREPEND.
 */
const actionsIn = (system: System): readonly string[] =>
  system
    .log()
    .flatMap((line) => /^smtpd: \w+: ((?:bcc|discard|hold|redirect|reject_warning|warn): RCPT .*)$/.exec(line)?.[1] ?? [])
    .toSorted()

describe.skipIf(reason !== null)(`access restrictions${reason === null ? '' : ` (${reason})`}`, () => {
  let pair: Pair
  beforeAll(async () => {
    pair = await startPair({ settings: ACCESS_SETTINGS })
  })
  afterAll(() => pair.stop())

  test(`${INPUTS} generated transactions get the same replies`, async () => {
    const differences: string[] = []
    for (const input of accessInputs(INPUTS, 19)) {
      const [own, reference] = await Promise.all([repliesTo(pair.deferd, input), repliesTo(pair.postfix, input)])
      if (own.join('\n') !== reference.join('\n')) differences.push(JSON.stringify({ input, own, reference }))
    }
    expect(differences).toEqual([])
    expect(actionsIn(pair.deferd)).toEqual(actionsIn(pair.postfix))
  })

  test('mail that is held, discarded, redirected, copied or gets a field is treated alike', async () => {
    const observe = async (system: System): Promise<readonly string[]> => {
      const before = system.received.length
      for (const sender of TREATED)
        await play(system.port, ['EHLO a.example', `MAIL FROM:<${sender}>`, 'RCPT TO:<ann@far.test>', 'RCPT TO:<bob@far.test>', 'DATA'])
      // One message each of head, other and plain for one next hop, and one of blind with a copy.
      await expect.poll(() => system.received.length).toBeGreaterThanOrEqual(before + 4)
      return system.received
        .slice(before)
        .map(({ sender, recipients, content }) => {
          const [first = ''] = content.toString('latin1').split('\r\n')
          return `${sender}: ${[...new Set(recipients)].toSorted().join()}: ${first.replace(/^(Received: from \S+).*/, '$1')}`
        })
        .toSorted()
    }
    const [own, reference] = await Promise.all([observe(pair.deferd), observe(pair.postfix)])
    expect(own).toEqual(reference)
    expect(actionsIn(pair.deferd)).toEqual(actionsIn(pair.postfix))
  })
})

/** A Dovecot authentication server with one mechanism, which is never used: XCLIENT gives the logins. */
const DOVECOT = 'VERSION\t1\t1\nMECH\tPLAIN\tplaintext\nSPID\t1\nCUID\t1\nCOOKIE\t00\nDONE\n'

test.skipIf(reason !== null)(
  `${INPUTS} generated senders get the same replies by their owners in smtpd_sender_login_maps`,
  async () => {
    const server = createServer((socket) => socket.on('error', () => undefined).write(DOVECOT))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const referenceSettings = { smtpd_sasl_auth_enable: 'yes', smtpd_sasl_type: 'dovecot', smtpd_sasl_path: `inet:127.0.0.1:${port}` }
    const folder = mkdtempSync(join(tmpdir(), 'deferd-logins-'))
    const users = join(folder, 'users')
    writeFileSync(users, '', { mode: 0o600 })
    const ownSettings = { smtpd_sasl_auth_enable: 'yes', smtpd_sasl_users_file: users }
    const pair = await startPair({ settings: LOGIN_SETTINGS, referenceSettings, ownSettings })
    try {
      const differences: string[] = []
      const replies = new Set<string>()
      for (const input of loginInputs(INPUTS, 20)) {
        const [own, reference] = await Promise.all([repliesTo(pair.deferd, input), repliesTo(pair.postfix, input)])
        if (own.join('\n') !== reference.join('\n')) differences.push(JSON.stringify({ input, own, reference }))
        replies.add(/: not \w+/.exec(own[1] ?? '')?.[0] ?? own[1] ?? '')
      }
      expect(differences.slice(0, 3)).toEqual([])
      expect([...replies]).toEqual(expect.arrayContaining([': not owned', ': not logged', '250 2.1.5 Ok']))
    } finally {
      await pair.stop()
      server.close()
      rmSync(folder, { recursive: true })
    }
  },
  120_000,
)
