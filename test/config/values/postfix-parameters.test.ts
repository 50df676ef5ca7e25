import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { OPTIONS } from '../../../src/config/options.ts'
import { foreignTableType, POSTFIX_ONLY } from '../../../src/config/values/postfix-parameters.ts'

/** The problems of a configuration that must be refused, one a line. */
function problems(values: Readonly<Record<string, unknown>>): readonly string[] {
  try {
    configFrom(values, 'relay.example')
  } catch (error) {
    return (error as Error).message.split('\n')
  }
  throw new Error('the configuration was accepted')
}

describe('parameters that only Postfix has', () => {
  test.each([
    ['smtp_sasl_auth_enable', /: not needed: deferd logs in at next hops that smtp_sasl_password_maps names/],
    ['smtp_use_tls', /: write smtp_tls_security_level = "may"$/],
    ['inet_interfaces', /: write smtpd_listen = /],
    ['mydestination', /: deferd has no mailboxes/],
    ['smtpd_reject_unlisted_recipient', /: remove it: recipients that relay_recipient_maps lacks/],
    ['smtpd_helo_restrictions', /: write smtpd_client_restrictions/],
    ['postscreen_dnsbl_sites', /: deferd has no postscreen/],
  ])('%s is answered with its remedy', (name, remedy) => {
    const [problem] = problems({ [name]: 'yes' })
    expect(problem).toContain(`${name}: deferd does not have Postfix’s parameter ${name}`)
    expect(problem).toMatch(remedy)
  })

  test('are answered where they are referred to, and in the tables of a destination', () => {
    expect(problems({ myorigin: '$mydestination' })[0]).toContain('deferd has no mailboxes')
    expect(problems({ destination: { 'a.example': { smtp_use_tls: 'yes' } } })[0]).toContain('write smtp_tls_security_level')
  })

  test('number at least 60, and none is a parameter of deferd', () => {
    expect(POSTFIX_ONLY.size).toBeGreaterThanOrEqual(60)
    expect([...POSTFIX_ONLY].filter((name) => Object.hasOwn(OPTIONS, name))).toEqual([])
  })
})

test('a parameter of the client is never answered with one of the server, nor the other way round', () => {
  const [client, server] = ['smtp_client_message_rate_limit', 'smtpd_connect_timeout'].map((name) => problems({ [name]: '1' })[0])
  expect(client).not.toContain('smtpd_')
  expect(server).not.toMatch(/did you mean smtp_/)
  for (const name of Object.keys(OPTIONS).filter((known) => known.startsWith('smtpd_'))) {
    const mistaken = name.replace('smtpd_', 'smtp_')
    if (!Object.hasOwn(OPTIONS, mistaken)) expect(problems({ [mistaken]: 'x' })[0]).not.toContain('did you mean smtpd_')
  }
})

describe('lookup tables', () => {
  test.each([
    [{ smtp_sasl_password_maps: 'hash:/etc/postfix/sasl_passwd' }, /does not read hash: tables; name the text file itself/],
    [{ smtp_tls_policy_maps: 'lmdb:/etc/postfix/tls_policy' }, /does not read lmdb: tables; write its entries as a list/],
    [{ relay_domains: 'hash:/etc/postfix/relay_domains' }, /does not read hash: tables; write its entries as a list/],
    [{ mynetworks: 'hash:/etc/postfix/networks' }, /does not read hash: tables; write its entries as a list/],
    [{ transport_maps: 'hash:/etc/postfix/transport' }, /transport_maps: deferd does not read hash: tables; name the text file itself/],
  ])('%j is refused with the remedy', (values, expected) => {
    expect(problems(values)).toEqual([expect.stringMatching(expected)])
  })

  test('texthash: and plain text are not refused', () => {
    expect(['texthash:/etc/deferd/sasl_passwd', '[::1]/128', 'smtp:[host]:25'].map(foreignTableType)).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })
})

test('problems of all kinds are found in one pass', () => {
  const found = problems({
    smtp_use_tls: 'yes',
    message_size_limit: 'big',
    myhostname: 'relay example com',
    minimal_backoff_time: '2h',
    relayhost: '::',
    transport_maps: { 'a.example': 'pigeon:coop' },
  })
  expect(found.map((line) => /^[\w."]+/.exec(line)?.[0])).toEqual([
    'smtp_use_tls',
    'message_size_limit',
    'minimal_backoff_time',
    'myhostname',
    'relayhost',
    'transport_maps.a.example',
  ])
})
