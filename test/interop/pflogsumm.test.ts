/**
 * pflogsumm counts the log with `tls=` as it counts the log without (smtp_log_tls_feature_status). Debian 12 has pflogsumm 1.1.5, which does
 * not know the field of Postfix 3.11: it gets the log through the command of docs/monitoring.md.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { ToldAddresses, type AddressForm } from '../../src/mail/told-addresses.ts'
import { openLog } from '../../src/telemetry/log.ts'
import { createWorld } from '../../src/testkit/index.ts'
import { reasonToSkip } from '../support/required.ts'

const PROGRAM = '/usr/sbin/pflogsumm'
const reason = reasonToSkip('interop', existsSync(PROGRAM) ? null : `${PROGRAM} is missing: install pflogsumm`)
const title = (text: string): string => (reason === null ? text : `${text} (not run: ${reason})`)

/** The log of a world in which mail is delivered, deferred, bounced and expired. */
async function logOf(tlsStatus: boolean, addresses?: ToldAddresses): Promise<string> {
  let text = ''
  await using world = await createWorld({ seed: 3, config: { maximal_queue_lifetime: '2h', bounce_queue_lifetime: '2h' } })
  const write = (written: string) => (text += written)
  const log = openLog({ format: 'postfix', syslogName: 'deferd', host: 'relay', pid: 1, clock: world.clock, write, tlsStatus, addresses })
  world.relayEvents.listen(log.listen)
  world.destination('slow.example').greylists('5m')
  world.destination('gone.example').isDown()
  world.destination('picky.example').rejects()
  const transport = createTransport(world.transport())
  for (const domain of ['fine.example', 'slow.example', 'gone.example', 'picky.example'])
    await transport.sendMail({ from: 'app@us.example', to: [`ann@${domain}`, `bob@${domain}`], text: 'hi' })
  await world.settle()
  log.flush()
  return text
}

const MONITORING = readFileSync(new URL('../../docs/monitoring.md', import.meta.url), 'utf8')
/** The options of sed in docs/monitoring.md. */
const [, SED_OPTION = '', SED_SCRIPT = ''] = /\| sed (-E) '([^']+)' \| pflogsumm/.exec(MONITORING) ?? []

/** The counts, without the details, which quote the lines. */
function totals(log: string): readonly string[] {
  const report = execFileSync(PROGRAM, ['--syslog-name=deferd', '--detail=0'], { input: log, encoding: 'utf8' })
  return report.split('\n').filter((line) => /^\s+\d+/.test(line))
}

test.skipIf(reason !== null)(title('pflogsumm counts as without tls='), async () => {
  const [having, lacking] = [await logOf(true), await logOf(false)]
  expect(having).toMatch(/, delays=[\d./]+, tls=may:none, dsn=2\.0\.0, status=sent/)
  expect(having).toContain(', tls=may?, dsn=4.4.1, status=deferred')
  expect(lacking).not.toContain('tls=')
  const counts = totals(execFileSync('sed', [SED_OPTION, SED_SCRIPT], { input: having, encoding: 'utf8' }))
  expect(counts).toEqual(totals(lacking))
  expect(counts.map((line) => line.trim().replace(/\s+/g, ' '))).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^[1-9]\d* delivered$/),
      expect.stringMatching(/^[1-9]\d* deferred/),
      expect.stringMatching(/^[1-9]\d* bounced$/),
    ]),
  )
})

test.skipIf(reason !== null).each<AddressForm>(['hashed', 'domain'])(
  title('pflogsumm counts as much without addresses: %s'),
  async (form) => {
    const addresses = new ToldAddresses()
    addresses.change(form, 'key')
    const log = await logOf(false, addresses)
    expect(log).not.toMatch(/(?:ann|bob|app)@/)
    // Counts by domain need domains.
    const messages = (text: string) => totals(text).filter((line) => !/domains|hosts|senders|recipients/.test(line))
    expect(messages(log)).toEqual(messages(await logOf(false)))
  },
)
