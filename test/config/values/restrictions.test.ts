/** Lists of access restrictions. */
import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { parseRestrictions } from '../../../src/config/values/restrictions.ts'

const parse = (given: unknown) => parseRestrictions(given, 'check_sender_access')
const inline = (entries: Readonly<Record<string, string>>) => [{ kind: 'inline', entries: new Map(Object.entries(entries)) }]

test('names with their arguments, separated by commas or blanks', () => {
  const text = 'permit_mynetworks, check_client_access texthash:/etc/clients warn_if_reject REJECT_UNKNOWN_SENDER_DOMAIN,reject'
  expect(parse(text)).toEqual([
    { kind: 'permit_mynetworks', warnsOnly: false },
    { kind: 'check_client_access', tables: [{ kind: 'texthash', path: '/etc/clients' }], warnsOnly: false },
    { kind: 'reject_unknown_sender_domain', warnsOnly: true },
    { kind: 'reject', warnsOnly: false },
  ])
  expect(parse(text.split(', '))).toEqual(parse(text))
  expect(parse('')).toEqual([])
})

test('a table alone is an access table for the subject of the list', () => {
  const expected = [{ kind: 'check_sender_access', tables: inline({ 'ann@b.example': 'REJECT no' }), warnsOnly: false }]
  expect(parse({ 'Ann@b.example': 'REJECT no' })).toEqual(expected)
  expect(parse('inline:{{ann@b.example = REJECT no}}')).toEqual(expected)
  expect(parse([{ check_sender_access: { 'ann@b.example': 'REJECT no' } }])).toEqual(expected)
})

test('policy servers', () => {
  expect(parse('check_policy_service inet:127.0.0.1:10031')).toEqual([
    { kind: 'check_policy_service', name: 'inet:127.0.0.1:10031', server: { host: '127.0.0.1', port: 10031 }, warnsOnly: false },
  ])
  expect(parse('check_policy_service inet:[::1]:10031')).toMatchObject([{ server: { host: '::1', port: 10031 } }])
  expect(parse('check_policy_service unix:/run/policy')).toMatchObject([{ server: { path: '/run/policy' } }])
})

test.each([
  ['check_sender_access', 'check_sender_access has no table; write check_sender_access texthash:/PATH'],
  ['check_policy_service', '"" is not a policy server'],
  ['check_policy_service inet:host', '"inet:host" is not a policy server; write inet:127.0.0.1:10031 or unix:/PATH'],
  ['check_policy_service inet:host:99999', 'is not a policy server'],
  ['reject_rbl_client zen.example', 'deferd does not query block lists'],
  ['reject_unlisted_recipient', 'remove it: recipients that relay_recipient_maps lacks'],
  ['check_helo_access texthash:/x', 'is not a restriction of deferd'],
  ['check_sender_access hash:/etc/senders', 'deferd does not read hash: tables'],
  ['permit warn_if_reject', 'warn_if_reject is the last word'],
  ['check_policy_service {inet:h:1, weight=3}', '"weight=3" is no setting of a policy server; write timeout=10s, default_action=DUNNO'],
])('%s is refused with a remedy', (text, message) => {
  expect(() => parse(text)).toThrow(message)
})

test('policy servers with settings in braces', () => {
  const text = 'check_policy_service { inet:127.0.0.1:10023, timeout=10s, { default_action = 451 4.3.0 later }, policy_context=in }'
  expect(parse(text)).toEqual([
    {
      kind: 'check_policy_service',
      name: text.slice('check_policy_service '.length),
      server: { host: '127.0.0.1', port: 10023 },
      timeout: 10_000,
      default_action: '451 4.3.0 later',
      policy_context: 'in',
      warnsOnly: false,
    },
  ])
})

describe('the configuration', () => {
  const withClasses =
    (classes: unknown, sender = '') =>
    () =>
      configFrom({ smtpd_restriction_classes: classes, smtpd_sender_restrictions: sender }, 'relay.example')

  test('has classes of restrictions', () => {
    const { config } = withClasses({ inner: ['reject'], outer: 'permit_mynetworks, inner' }, 'outer')()
    expect(config.smtpd_restriction_classes.get('outer')).toMatchObject([{ kind: 'permit_mynetworks' }, { kind: 'class', name: 'inner' }])
    expect(config.smtpd_sender_restrictions).toMatchObject([{ kind: 'class', name: 'outer' }])
  })

  test.each<readonly [unknown, string, string]>([
    ['', 'allow', '"allow" is not a restriction of deferd; write one of permit, reject'],
    [{ a: 'b' }, '', '"b" is not a restriction of deferd'],
    [{ a: 'b', b: 'a' }, '', 'smtpd_restriction_classes: a → b → a is a circular reference'],
    [{ reject: 'permit' }, '', 'reject is a restriction; name the class otherwise'],
    [{ 'a b': 'permit' }, '', '"a b" is no name of a class'],
    [{ a: 'texthash:/x' }, '', 'a: a table alone has no subject here; write check_sender_access'],
    ['a', '', 'expected a table; write [smtpd_restriction_classes]'],
  ])('classes %j, list %j', (classes, sender, message) => {
    expect(withClasses(classes, sender)).toThrow(message)
  })

  test.each(['', 'permit_mynetworks', 'permit, reject', 'warn_if_reject reject_unauth_destination'])(
    'relay restrictions %j are refused',
    (list) => {
      expect(() => configFrom({ smtpd_relay_restrictions: list }, 'relay.example')).toThrow('would let every client relay')
    },
  )
})

test('a value of another type is refused', () => {
  expect(() => parse(7)).toThrow('expected a list of restrictions, got 7')
})
