/** The settings in which nodes differ are named, and a host name of each is no difference. */
import { expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { sharedSettings } from '../../../src/daemon/node/shared-settings.ts'
import { nodesJson } from '../../../src/resources/node-json.ts'
import { WallView } from '../../../src/system/wall-view.ts'

const differing = (...configurations: readonly Parameters<typeof configFrom>[0][]): readonly (readonly string[])[] => {
  const nodes = configurations.map((values, n) => ({
    id: n + 1,
    name: `n${n + 1}`,
    beat: 1,
    beatAge: 0,
    draining: false,
    shards: 1,
    leased: 0,
    program: '0',
    joinedAt: 0,
    settings: sharedSettings(configFrom({ myhostname: `n${n + 1}.example`, ...values })),
  }))
  return nodesJson({ nodes, lost: [], lease: 5_000, me: null, slots: new Map() }, new WallView(() => 0)).map(
    (one) => one.differing_settings,
  )
}

test('a name of each node, and files of each machine, are no difference', () => {
  expect(differing({}, { smtp_tls_CAfile: '/other' }, { smtpd_banner: 'hello' })).toEqual([[], [], []])
})

test('parameters and members of tables are named at the node that differs from most', () => {
  const common = { maximal_backoff_time: '1h', destination: { 'gmail.com': { destination_concurrency_limit: 5 } } }
  expect(
    differing(common, common, {
      minimal_backoff_time: '60s',
      destination: { 'gmail.com': { destination_concurrency_limit: 6 } },
      transport_maps: { 'a.example': 'smtp:[127.0.0.1]:2526' },
    }),
  ).toEqual([
    [],
    [],
    ['destination."gmail.com" destination_concurrency_limit', 'maximal_backoff_time', 'minimal_backoff_time', 'transport_maps a.example'],
  ])
})
