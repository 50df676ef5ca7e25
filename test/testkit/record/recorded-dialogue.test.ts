/** A dialogue that the relay has kept is a script: the replayed server fails in the same way. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RelayParameters } from '../../../src/config/values/relay-parameters.ts'
import { readScriptOrDialogue, scriptOf } from '../../../src/testkit/record/recorded-dialogue.ts'
import { SmtpAgentHarness } from '../../support/smtp-agent-harness.ts'
import type { RuleText } from '../../../src/testkit/remote/rule-keys.ts'
import { createWorld } from '../../../src/testkit/create-world.ts'
import type { World } from '../../../src/testkit/world.ts'

const TO = 'ann@far.example'

interface Failure {
  readonly dialogue: string
  readonly reason: string
}

/** The first failed attempt of a message. */
async function failureIn(world: World, wait: string): Promise<Failure> {
  const id = await world.submit({ to: TO })
  await world.advance(wait)
  const details = await world.reader.details(id)
  const [attempt] = details?.history ?? []
  return { dialogue: (await world.dialogue(id)) ?? '', reason: attempt?.status.reason ?? '' }
}

const FAULTS: readonly { readonly what: string; readonly rule: RuleText; readonly wait?: string; readonly config?: RelayParameters }[] = [
  { what: 'a connection that is refused', rule: { at: 'connect', connect: 'refused' } },
  { what: 'a connection that times out', rule: { at: 'connect', connect: 'timeout' }, wait: '1m' },
  { what: 'a greeting', rule: { at: 'greeting', reply: '554 5.7.1 not you' } },
  { what: 'a reply to EHLO and HELO', rule: { at: 'ehlo', reply: '550 5.7.1 no' } },
  { what: 'a late reply to MAIL', rule: { at: 'mail', reply: '451 4.3.0 no', delay: '7s' }, wait: '1m' },
  { what: 'a reply of several lines to RCPT', rule: { at: 'rcpt', reply: '550-5.1.1 no such user\n550 5.1.1 at all' } },
  { what: 'a reply to DATA', rule: { at: 'data', reply: '452 4.3.1 no room' } },
  { what: 'a reply to the content', rule: { at: 'end-of-data', reply: '554 5.7.1 spam', delay: '3s' }, wait: '1m' },
  { what: 'a content without a reply', rule: { at: 'end-of-data', stall: true }, wait: '11m' },
  { what: 'a reset', rule: { at: 'data', drop: 'rst' } },
  { what: 'a closed connection in place of a reply to MAIL', rule: { at: 'mail', drop: 'fin' } },
  {
    what: 'a connection that ends in the handshake',
    rule: { at: 'handshake', drop: 'rst' },
    wait: '1s',
    config: { smtp_tls_security_level: 'encrypt' },
  },
]

test.each(FAULTS)('$what is replayed', async ({ rule, wait = '1s', config = {} }) => {
  const open = async (script?: string): Promise<World> => {
    const world = await createWorld({ config, ...(script === undefined ? {} : { script }) })
    if (config.smtp_tls_security_level === 'encrypt') world.destination('far.example').offersTls()
    return world
  }
  await using real = await open()
  real.destination('far.example').fails(rule)
  const failure = await failureIn(real, wait)
  expect(failure.reason).not.toBe('')
  await using replayed = await open(failure.dialogue)
  expect((await failureIn(replayed, wait)).reason).toBe(failure.reason)
})

test.each([
  ['a refusal', '554 5.7.1 spam', 'reply = "554 5.7.1 spam"'],
  ['a closed connection', { drop: true }, 'drop = "fin"'],
  ['no reply', null, 'stall = true'],
] as const)('the reply to a content in chunks: %s', async (_, dot, fault) => {
  const far = new SmtpAgentHarness({ config: ['relayhost=[hop.example]'], recorded: true })
  far.host('hop.example', '192.0.2.9', { ehlo: '250-hop\r\n250-PIPELINING\r\n250 CHUNKING', dot })
  const { of } = await far.deliver({ to: [TO] })
  expect(of().session?.text).toMatch(/C BDAT \d+ LAST/)
  const [, rule] = scriptOf(of().session?.text ?? '', 'd.txt').split('[rule.end-of-data-1]')
  expect(rule).toContain(fault)
})

/** Lines of two sessions in a trace. */
const TRACE = `1: # deferd session, smtp to mx.far.example[192.0.2.1]:25, 2026-11-29T03:00:00.000Z
1:       4 * connected from 198.51.100.7
1:      31 S 220 mx.far.example ESMTP
1:      31 C EHLO relay.example.com
1:      58 S 250 mx.far.example
1:      58 C MAIL FROM:<app@example.com>
2: # deferd session, smtp to mx.far.example[192.0.2.1]:25, 2026-11-29T03:10:00.000Z
2:       4 * cannot connect: Connection refused
1:    2224 S 451 4.7.1 later
`

test('the sessions of a trace are one script', () => {
  const { rules } = readScriptOrDialogue(TRACE, 'trace.txt')
  expect(rules.map(({ name }) => name)).toEqual(['connect-1', 'ehlo-1', 'mail-1'])
  expect(scriptOf(TRACE, 'trace.txt')).toMatch(/at = "mail"\n[^]*reply = "451 4\.7\.1 later"\ndelay = "(?:2200ms|2\.2s)"/)
})

test('lines that are left out, and a connection that is used again, are taken for good ones', () => {
  const text = `# deferd session, smtp to mx.far.example[192.0.2.1]:25, 2026-11-29T03:00:00.000Z
   1000 * the connection from 198.51.100.7 is used again
   1000 C MAIL FROM:<app@example.com>
   1010 S 250 2.1.0 Ok
# 12 lines are left out here
   2010 S 250 2.0.0 Ok
   2020 C RSET
   2020 C MAIL FROM:<app@example.com>
   2020 C RCPT TO:<bob@far.example>
   2030 S 250 2.0.0 Ok
   2030 S 250 2.1.0 Ok
   2030 S 550 5.1.1 no such user
`
  expect(readScriptOrDialogue(text, 'd.txt').rules.map(({ name }) => name)).toEqual(['rcpt-1'])
})

test.each([
  ['2: # 12 lines are left out here', ['connect-1', 'ehlo-1', 'mail-1']],
  ['# 12 lines are left out here', ['connect-1', 'ehlo-1']],
])('of a trace, %s is about its session, or about all', (leftOut, names) => {
  const text = TRACE.replace('1:    2224', `${leftOut}\n1:    2224`)
  expect(readScriptOrDialogue(text, 'trace.txt').rules.map(({ name }) => name)).toEqual(names)
})

test('a line that is none of a dialogue is named', () => {
  expect(() => scriptOf(`${TRACE}550 no\n`, 'trace.txt')).toThrow('trace.txt:10: is no line of a dialogue')
})

test('a script stays a script, also one that begins with a comment', () => {
  expect(readScriptOrDialogue('# deferd sessions\n[rule.a]\nat = "mail"\nreply = "451 no"\n', 's.toml').rules).toHaveLength(1)
})

const SAID = [
  ...['connected from 192.0.2.2', 'cannot connect: Connection timed out', 'connection lost in data', 'timeout in mail'].map(
    (text) => `* ${text}`,
  ),
  ...['Connection reset by peer', 'TLSv1.3 with X, certificate trusted', 'TLS failed: read ECONNRESET', 'trying without TLS'].map(
    (text) => `* ${text}`,
  ),
  ...['EHLO a', 'MAIL FROM:<a@b.example>', 'RCPT TO:<c@d.example>', 'DATA', 'BDAT 3', 'BDAT 3 LAST', '[3 bytes]', 'AUTH PLAIN ****'].map(
    (text) => `C ${text}`,
  ),
  ...['****', 'RSET', 'QUIT', 'STARTTLS', 'MAIL ****'].map((text) => `C ${text}`),
  ...['220 mx', '250-mx', '250 AUTH PLAIN', '334 ****', '354 go', '451 no', '550-no', '550 5.1.1 no', 'nonsense', ''].map(
    (text) => `S ${text}`,
  ),
  '* the connection from 192.0.2.2 is used again',
]

test('any lines of a dialogue are a script', () => {
  const line = fc.record({ at: fc.integer({ min: 0, max: 99_999 }), said: fc.constantFrom(...SAID) })
  const lines = fc.array(fc.oneof({ weight: 20, arbitrary: line }, fc.constant(null)), { maxLength: 40 })
  const property = fc.property(lines, (all) => {
    const [heading = ''] = TRACE.slice(3).split('\n')
    const told = all.map((one) => (one === null ? '# 3 lines are left out here' : `${String(one.at).padStart(7)} ${one.said}`))
    expect(() => readScriptOrDialogue([heading, ...told].join('\n'), 'd.txt')).not.toThrow()
  })
  fc.assert(property, { numRuns: 300, seed: 1 })
})
