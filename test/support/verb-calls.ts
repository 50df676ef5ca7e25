import type { RemoteDomain as Domain } from '../../src/testkit/index.ts'

/** Each verb with its body, and the call in Node. */
export const VERB_CALLS: readonly (readonly [string, object, (domain: Domain) => unknown])[] = [
  ['greylists', { delay: '5m', window: '2h' }, (domain) => domain.greylists('5m', { window: '2h' })],
  ['greylists', { delay: 300 }, (domain) => domain.greylists(300)],
  ['is_down', {}, (domain) => domain.isDown()],
  ['is_down_for', { time: '3d' }, (domain) => domain.isDownFor('3d')],
  ['is_down_between', { from: '1h', until: '2h' }, (domain) => domain.isDownBetween('1h', '2h')],
  ['is_unreachable', {}, (domain) => domain.isUnreachable()],
  ['rejects', {}, (domain) => domain.rejects()],
  ['rejects', { recipient: 'bob@x.example', reply: '550 5.1.1 no' }, (domain) => domain.rejects('bob@x.example', '550 5.1.1 no')],
  ['defers', { for: '1h' }, (domain) => domain.defers('*', undefined, { for: '1h' })],
  ['defers', { recipient: 'bob@x.example', reply: '450 4.2.1 busy' }, (domain) => domain.defers('bob@x.example', '450 4.2.1 busy')],
  ['fails_first', { times: 2, reply: '450 4.2.1 busy' }, (domain) => domain.failsFirst(2, '450 4.2.1 busy')],
  ['mailbox_is_full', { recipient: 'bob@x.example', for: '1d' }, (domain) => domain.mailboxIsFull('bob@x.example', { for: '1d' })],
  [
    'throttles',
    { rate: '10/1m', penalty: '5m', reply: '421 4.7.0 slow' },
    (domain) => domain.throttles('10/1m', { penalty: '5m', reply: '421 4.7.0 slow' }),
  ],
  ['allows_connections', { count: 2 }, (domain) => domain.allowsConnections(2)],
  ['drops_after_dot', { times: 2 }, (domain) => domain.dropsAfterDot(2)],
  ['is_slow', { time: '90s' }, (domain) => domain.isSlow('90s')],
  ['fails_in_dns', { how: 'nxdomain' }, (domain) => domain.failsInDns('nxdomain')],
  [
    'has_exchangers',
    { records: ['10 mx1.x.example', '20 mx2.x.example'] },
    (domain) => domain.hasExchangers('10 mx1.x.example', '20 mx2.x.example'),
  ],
  ['offers_tls', { certificate: 'expired' }, (domain) => domain.offersTls('expired')],
  ['has_tlsa', { records: ['3 1 1'] }, (domain) => domain.hasTlsa('3 1 1')],
  [
    'has_sts_policy',
    { mode: 'enforce', max_age: '1d', fails: 404 },
    (domain) => domain.hasStsPolicy({ mode: 'enforce', maxAge: '1d', fails: 404 }),
  ],
  ['recovers', {}, (domain) => domain.recovers()],
]
