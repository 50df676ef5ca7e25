/** The order of hosts (RFC 5321 §5.1). */
import type { Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { betterThanRelay, inOrder, type Host, type Ordering } from '../../../src/delivery/routing/host-order.ts'
import { mulberry32 } from '../../../src/system/random.ts'
import { SmtpAgentHarness } from '../../support/smtp-agent-harness.ts'

const host = (address: string, preference = 10): Host => ({ name: 'mx', address, port: 25, preference, best: true })
const four = (count: number) => Array.from({ length: count }, (_, i) => host(`192.0.2.${i + 1}`))
const six = (count: number) => Array.from({ length: count }, (_, i) => host(`2001:db8::${i + 1}`))
const ordering = (changes: Partial<Ordering> = {}): Ordering => ({
  randomize: false,
  family: 'any',
  balance: true,
  limit: 5,
  draw: () => 0,
  ...changes,
})
const families = (hosts: readonly Host[]) => hosts.map(({ address }) => (address.includes(':') ? 6 : 4)).join('')

describe('addresses', () => {
  test('lower preference first, random order among equals', () => {
    const hosts = [host('192.0.2.9', 20), ...four(4)]
    const orders = new Set<string>()
    for (let seed = 0; seed < 200; seed++) {
      const order = inOrder(hosts, ordering({ randomize: true, draw: mulberry32(seed) })).map(({ address }) => address)
      expect(order.at(-1)).toBe('192.0.2.9')
      orders.add(order.join())
    }
    expect(orders.size).toBe(24)
  })

  test('the same seed gives the same order', async () => {
    const dialled = async (seed: number) => {
      const world = new SmtpAgentHarness({ seed }).mx('example.net', [10, 'mx'])
      world.addresses('mx', ...four(5).map(({ address }) => address))
      await world.deliver({ to: ['a@example.net'] })
      return world.dialled
    }
    expect(await dialled(7)).toEqual(await dialled(7))
    const all = await Promise.all([1, 2, 3, 4, 5, 6].map(dialled))
    expect(new Set(all.map(String)).size).toBeGreaterThan(1)
  })

  test.each([
    ['half of each, the odd one for the family of the first', [...four(5), ...six(5)], '44466'],
    ['the same the other way round', [...six(5), ...four(5)], '66644'],
    ['a small family whole', [...four(1), ...six(9)], '46666'],
    ['a small second family whole', [...four(9), ...six(1)], '44446'],
    ['no more than there is', [...four(2), ...six(1)], '446'],
    ['one family alone', four(9), '44444'],
  ])('balance: %s', (_what, hosts, expected) => {
    expect(families(inOrder(hosts, ordering()))).toBe(expected)
  })

  test('without balance the first addresses are used; without a limit all are', () => {
    expect(families(inOrder([...four(9), ...six(2)], ordering({ balance: false })))).toBe('44444')
    expect(inOrder([...four(9), ...six(2)], ordering({ limit: 0 }))).toHaveLength(11)
  })

  test('smtp_address_preference breaks ties, but not preferences', () => {
    expect(families(inOrder([...four(2), ...six(2)], ordering({ family: 'ipv6' })))).toBe('6644')
    expect(families(inOrder([host('192.0.2.1', 5), ...six(1)], ordering({ family: 'ipv6' })))).toBe('46')
  })

  const anyHost = fc.record({ preference: fc.constantFrom(5, 10, 20), v6: fc.boolean(), n: fc.integer({ min: 1, max: 200 }) })
  test('no address is added or repeated, the limit holds, and preferences ascend', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(anyHost, { maxLength: 20, selector: ({ v6, n }) => `${v6} ${n}` }),
        fc.nat(8),
        fc.nat(),
        (list, limit, seed) => {
          const hosts = list.map(({ preference, v6, n }) => host(v6 ? `2001:db8::${n.toString(16)}` : `192.0.2.${n}`, preference))
          const order = inOrder(hosts, ordering({ limit, randomize: true, draw: mulberry32(seed) }))
          expect(order).toHaveLength(limit === 0 ? hosts.length : Math.min(limit, hosts.length))
          expect(new Set(order).size).toBe(order.length)
          expect(hosts).toEqual(expect.arrayContaining(order))
          expect(order.map(({ preference }) => preference)).toEqual(order.map(({ preference }) => preference).toSorted((a, b) => a - b))
        },
      ),
    )
  })

  test('hosts at or above the own preference are not tried', () => {
    const hosts = [host('192.0.2.1', 10), host('192.0.2.2', 20), host('192.0.2.3', 20), host('192.0.2.4', 30)]
    expect(betterThanRelay(hosts, ({ address }) => address === '192.0.2.3')).toEqual({ hosts: [hosts[0]], listed: true })
    expect(betterThanRelay(hosts, () => false)).toEqual({ hosts, listed: false })
  })
})

describe('the own address', () => {
  const at = (listening: string, own: readonly string[] = [], mx = '192.0.2.20') =>
    new SmtpAgentHarness({ config: [`smtpd_listen=${listening}`], own }).mx('example.net', [10, 'mx']).addresses('mx', mx)

  test.each([
    ['192.0.2.20:25', [], '5.4.6'],
    ['0.0.0.0:25', ['192.0.2.20'], '5.4.6'],
    ['[::]:25', ['192.0.2.20'], '5.4.6'],
    ['*:25', ['192.0.2.20'], '5.4.6'],
    ['25', ['192.0.2.20'], '5.4.6'],
    ['192.0.2.20:2525, 192.0.2.20:25, 192.0.2.20:587', ['192.0.2.20'], '5.4.6'],
    // Another server of this machine has port 25 of the address.
    ['127.0.0.1:2525', ['127.0.0.1', '192.0.2.20'], '4.4.1'],
    ['0.0.0.0:2525', ['192.0.2.20'], '4.4.1'],
    ['192.0.2.20:587', ['192.0.2.20'], '4.4.1'],
    ['127.0.0.1:25', ['127.0.0.1', '192.0.2.20'], '4.4.1'],
    ['192.0.2.21:25', ['192.0.2.20', '192.0.2.21'], '4.4.1'],
    ['192.0.2.21:25', ['192.0.2.21'], '4.4.1'],
    ['0.0.0.0:25', ['192.0.2.21'], '4.4.1'],
  ])('listening on %s, with addresses %j: %s', async (listening, own, status) => {
    const world = at(listening, own)
    expect((await world.deliver({ to: ['a@example.net'] })).of().status).toBe(status)
    expect(world.dialled).toEqual(status === '5.4.6' ? [] : ['192.0.2.20'])
  })

  test.each([
    ['[2001:db8:0::20]:25', '5.4.6'],
    ['[::]:25', '5.4.6'],
    ['*:25', '5.4.6'],
    ['0.0.0.0:25', '4.4.1'],
  ])('listening on %s, with an address of IPv6: %s', async (listening, status) => {
    const world = at(listening, ['2001:db8::20'], '2001:db8::20')
    expect((await world.deliver({ to: ['a@example.net'] })).of().status).toBe(status)
  })

  test('all ports of smtp_tcp_port and of further listeners count', async () => {
    const world = new SmtpAgentHarness({ config: ['smtp_tcp_port=2525', 'smtpd_listen=0.0.0.0:2525'], own: ['192.0.2.20'] })
    world.mx('example.net', [10, 'mx']).addresses('mx', '192.0.2.20')
    expect((await world.deliver({ to: ['a@example.net'] })).of().status).toBe('5.4.6')
  })

  test('the exchanger on the same machine gets the mail of a relay that is one of worse preference too', async () => {
    const world = new SmtpAgentHarness({ config: ['smtpd_listen=192.0.2.21:25'], own: ['192.0.2.20', '192.0.2.21'] })
    world.mx('example.net', [10, 'mail'], [20, 'backup'], [30, 'last'])
    world.addresses('backup', '192.0.2.21').addresses('last', '192.0.2.22').host('mail', '192.0.2.20')
    expect((await world.deliver({ to: ['a@example.net'] })).of().status).toBe('2.0.0')
    expect(world.dialled).toEqual(['192.0.2.20'])
  })

  test('an address of proxy_interfaces, or the name of this relay, in an MX record', async () => {
    const behind = new SmtpAgentHarness({ config: ['proxy_interfaces=192.0.2.20'] })
      .mx('example.net', [10, 'mx'])
      .addresses('mx', '192.0.2.20')
    expect((await behind.deliver({ to: ['a@example.net'] })).of().status).toBe('5.4.6')
    const named = (listening: string, own: readonly string[] = []) =>
      new SmtpAgentHarness({ config: [`smtpd_listen=${listening}`], own })
        .mx('example.net', [10, 'relay.us.example'])
        .addresses('relay.us.example', '192.0.2.20')
    // An address of NAT, behind which this relay listens.
    for (const listening of ['0.0.0.0:25', '10.0.0.5:25']) {
      const world = named(listening)
      expect((await world.deliver({ to: ['a@example.net'] })).of().status).toBe('5.4.6')
      expect(world.dialled).toEqual([])
    }
    // The mail server of the machine may have the name of the machine.
    for (const world of [named('127.0.0.1:2525'), named('127.0.0.1:25'), named('10.0.0.5:25', ['10.0.0.5', '192.0.2.20'])])
      expect((await world.deliver({ to: ['a@example.net'] })).of().status).toBe('4.4.1')
  })

  test('exchangers of worse preference are not tried', async () => {
    const world = new SmtpAgentHarness({ config: ['smtpd_listen=*:25'], own: ['192.0.2.20'] }).mx('example.net', [10, 'mx'], [20, 'backup'])
    world.addresses('mx', '192.0.2.20').host('backup', '192.0.2.21')
    expect((await world.deliver({ to: ['a@example.net'] })).of().status).toBe('5.4.6')
    expect(world.dialled).toEqual([])
  })

  test('a next hop of the configuration at another port may be on this machine', async () => {
    const world = new SmtpAgentHarness({ own: ['127.0.0.1'], config: ['relayhost=localhost:2526'] }).addresses('localhost', '127.0.0.1')
    await world.deliver({ to: ['a@example.net'] })
    expect(world.dialled).toEqual(['127.0.0.1:2526'])
  })
})

describe('DNS', () => {
  test('a temporary lookup failure takes precedence over permanent ones of other hosts', async () => {
    const world = new SmtpAgentHarness().mx('example.net', [10, 'a'], [20, 'b'], [30, 'c'])
    world
      .addressAnswer('b', { kind: 'failed', soft: true, reason: 'ETIMEOUT' })
      .addressAnswer('c', { kind: 'failed', soft: false, reason: 'EREFUSED' })
    expect((await world.deliver({ to: ['x@example.net'] })).of()).toMatchObject({ outcome: 'deferred', status: '4.4.3' })
  })

  test('an invalid domain name', async () => {
    const bad = new SmtpAgentHarness().mx('example.net', [10, 'not a name'])
    expect((await bad.deliver({ to: ['x@example.net'] })).of()).toMatchObject({ outcome: 'bounced', status: '5.4.4' })
    expect(bad.asked).toEqual(['MX example.net'])
  })

  test('an address in place of a name is used without a lookup', async () => {
    const world = new SmtpAgentHarness().mx('example.net', [10, '192.0.2.9'], [20, '127.0.0.1'])
    world.host('literal', '192.0.2.9')
    expect((await world.deliver({ to: ['x@example.net'] })).of().outcome).toBe('delivered')
    expect(world.asked).toEqual(['MX example.net'])
    const inside = new SmtpAgentHarness().mx('example.net', [10, '127.0.0.1'])
    expect((await inside.deliver({ to: ['x@example.net'] })).of()).toMatchObject({ outcome: 'deferred', status: '4.4.4' })
  })

  test('an internationalized domain is looked up in its ASCII form', async () => {
    const world = new SmtpAgentHarness()
    await world.deliver({ to: ['a@bücher.example'] })
    expect(world.asked[0]).toBe('MX xn--bcher-kva.example')
  })

  test('connections are made from smtp_bind_address', async () => {
    const seen: (string | undefined)[] = []
    const world = new SmtpAgentHarness({ config: ['smtp_bind_address=192.0.2.99'] })
      .mx('example.net', [10, 'mx'])
      .addresses('mx', '192.0.2.1')
    const accept = (socket: Socket) => {
      seen.push(socket.remoteAddress)
      socket.destroy()
    }
    world.dialOutcome('192.0.2.1', { kind: 'open', accept })
    await world.deliver({ to: ['a@example.net'] })
    expect(seen).toEqual(['192.0.2.99'])
  })
})
