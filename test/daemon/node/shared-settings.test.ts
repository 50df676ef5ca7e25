/** The settings in which nodes differ are named, and a host name of each is no difference. */
import { expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { nodeParameters, nodeSettings } from '../../../src/daemon/node/shared-settings.ts'
import { nodesJson } from '../../../src/resources/node-json.ts'
import { betweenNodesJson } from '../../../src/resources/settings-json.ts'
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
    ...nodeParameters(configFrom({ myhostname: `n${n + 1}.example`, ...values })),
  }))
  return nodesJson({ nodes, lost: [], isSilent: () => false, me: null, slots: new Map() }, new WallView(() => 0)).map(
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

test('the values of settings in which nodes differ are shown without secrets', () => {
  const at = (node: string, values: Parameters<typeof configFrom>[0]) => ({
    node,
    settings: nodeSettings(configFrom({ myhostname: `${node}.example`, ...values })),
  })
  const hook = (path: string) => ({ to: `https://hooks.example/${path}?key=sesame`, secret: `whsec_${'QUJD'.repeat(8)}` })
  const nodes = [
    at('n1', { maximal_backoff_time: '1h', smtp_tls_CAfile: '/one', events: { app: hook('one') } }),
    at('n2', { smtp_tls_CAfile: '/two', events: { app: hook('two') } }),
  ]
  const between = betweenNodesJson(nodes, ['n3'])
  expect(between).toEqual({
    differing: [
      {
        name: 'events."app" to',
        default: null,
        values: [
          { node: 'n1', value: 'https://hooks.example/(not shown)' },
          { node: 'n2', value: 'https://hooks.example/(not shown)' },
        ],
      },
      {
        name: 'maximal_backoff_time',
        default: '4000s',
        values: [
          { node: 'n1', value: '1h' },
          { node: 'n2', value: '4000s' },
        ],
      },
    ],
    unanswered: ['n3'],
  })
  expect(JSON.stringify(nodes)).not.toMatch(/sesame|whsec_QUJD/)
})
