/** Protocols of listeners and of deliveries (inet_protocols). */
import { describe, expect, test } from 'vitest'
import { listenAt } from '../../src/config/values/endpoints.ts'
import { configFrom } from '../../src/config/load.ts'
import { SmtpAgentHarness } from '../support/smtp-agent-harness.ts'
import { openSmtpd } from '../support/smtpd-harness.ts'

const TO = ['ann@example.net']
const problem = (values: Readonly<Record<string, unknown>>): string => {
  try {
    configFrom(values, 'relay.example')
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

describe('listeners', () => {
  test.each([
    ['*:25', 'all', ['ipv4', 'ipv6']],
    ['*:25', 'ipv4', ['ipv4']],
    ['*:25', 'ipv6', ['ipv6']],
    ['25', 'ipv4', ['ipv4']],
    ['[::]:25', 'all', ['ipv4', 'ipv6']],
    ['[::]:25', 'ipv6', ['ipv6']],
    ['0.0.0.0:25', 'ipv4, ipv6', ['ipv4']],
  ])('%s with inet_protocols = %s takes clients of %j', async (listen, protocols, expected) => {
    const { config } = configFrom({ smtpd_listen: listen, inet_protocols: protocols }, 'relay.example')
    const { net } = await openSmtpd(config)
    const reached: string[] = []
    for (const [family, address] of [
      ['ipv4', '192.0.2.1'],
      ['ipv6', '2001:db8::1'],
    ] as const) {
      const connection = net.dialFrom(address, { address, port: 25 })
      await connection.then(
        () => reached.push(family),
        () => undefined,
      )
    }
    expect(reached).toEqual(expected)
  })

  test.each([
    [{ smtpd_listen: '[::1]:25', inet_protocols: 'ipv4' }, 'smtpd_listen: ::1 is an IPv6 address, and inet_protocols has no ipv6'],
    [{ smtpd_listen: '[::]:25', inet_protocols: 'ipv4' }, 'smtpd_listen: :: is an IPv6 address, and inet_protocols has no ipv6'],
    [{ smtpd_listen: '0.0.0.0:25', inet_protocols: 'ipv6' }, 'smtpd_listen: 0.0.0.0 is an IPv4 address, and inet_protocols has no ipv4'],
    [{ inet_protocols: 'ipv6' }, 'smtpd_listen: 127.0.0.1 is an IPv4 address, and inet_protocols has no ipv4'],
    [{ smtpd: [{ address: '[::1]:25' }], inet_protocols: 'ipv4' }, 'smtpd: ::1 is an IPv6 address'],
    [{ http_listen: '[::1]:80', inet_protocols: 'ipv4' }, 'http_listen: ::1 is an IPv6 address'],
  ])('%j is refused', (values, text) => expect(problem(values)).toContain(text))

  test('a host name is left to the machine', () => {
    expect(listenAt('localhost:25', 'smtpd_listen', ['ipv6'])).toEqual({ address: 'localhost', port: 25 })
  })
})

describe('deliveries', () => {
  const world = (protocols: string, ...config: readonly string[]): SmtpAgentHarness => {
    const far = new SmtpAgentHarness({
      config: [`inet_protocols=${protocols}`, 'smtpd_listen=*:25', 'smtp_randomize_addresses=no', ...config],
    })
    far.mx('example.net', [10, 'mx.example.net']).host('mx.example.net', '192.0.2.1')
    far.host('mx.example.net', '2001:db8::1')
    return far
  }

  test.each([
    ['all', ['192.0.2.1', '2001:db8::1']],
    ['ipv4, ipv6', ['192.0.2.1', '2001:db8::1']],
    ['ipv4', ['192.0.2.1']],
    ['ipv6', ['2001:db8::1']],
  ])('with %s connect to %j', async (protocols, addresses) => {
    const far = world(protocols)
    for (const address of ['192.0.2.1', '2001:db8::1']) far.dialOutcome(address, { kind: 'closed', code: 'ECONNREFUSED' })
    await far.deliver({ to: TO })
    expect(far.dialled).toEqual(addresses)
  })

  test('ask DNS only for addresses that may be used', async () => {
    const far = world('ipv4')
    expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
    expect(far.asked).toEqual(['MX example.net', 'A mx.example.net'])
  })

  test('a host without an address of the family', async () => {
    const far = new SmtpAgentHarness({ config: ['inet_protocols=ipv4'] })
    far.mx('example.net', [10, 'mx.example.net']).host('mx.example.net', '2001:db8::1')
    expect((await far.deliver({ to: TO })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.4', stage: 'dns' })
  })

  test('a host whose addresses on the machine are of the other family', async () => {
    const far = world('ipv4', 'smtp_host_lookup=native').inHostsFile('mx.example.net', '2001:db8::1')
    expect((await far.deliver({ to: TO })).of()).toMatchObject({ status: '5.4.4', reason: 'mx.example.net: host not found' })
    far.inHostsFile('mx.example.net', '2001:db8::1', '192.0.2.1')
    expect((await far.deliver({ to: TO })).of().outcome).toBe('delivered')
  })

  test('an address literal of the other family is bounced', async () => {
    const result = await world('ipv4').deliver({ to: ['ann@[IPv6:2001:db8::1]'] })
    expect(result.of()).toMatchObject({ outcome: 'bounced', status: '5.4.4', reason: 'inet_protocols does not allow 2001:db8::1' })
  })

  test.each([
    [{ relayhost: '[192.0.2.1]:25' }, 'relayhost: 192.0.2.1 is an IPv4 address, and inet_protocols has no ipv4'],
    [{ smtp_fallback_relay: '[192.0.2.1]' }, 'smtp_fallback_relay: 192.0.2.1 is an IPv4 address'],
    [{ transport_maps: { '*': 'smtp:[192.0.2.1]' } }, 'transport_maps: 192.0.2.1 is an IPv4 address'],
  ])('a next hop of the other family is refused: %j', (values, text) => {
    expect(problem({ inet_protocols: 'ipv6', smtpd_listen: '[::1]:25', ...values })).toContain(text)
  })
})

test.each(['', 'ipv5', 'all, none'])('inet_protocols = %j is refused', (value) => {
  expect(problem({ inet_protocols: value })).toContain('inet_protocols: expected all, ipv4, ipv6, or "ipv4, ipv6"')
})
