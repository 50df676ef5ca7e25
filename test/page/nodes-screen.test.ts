/** The screen of the nodes, and the same facts on a terminal. */
import { expect, test } from 'vitest'
import { nodeScreen } from '../../src/cli/render/node-list.ts'
import { nodeQuestion, nodesScreen } from '../../src/page/screens/system/nodes-screen.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import type { NodeJson } from '../../src/resources/node-json.ts'
import { nodeList } from '../../src/queries/nodes.ts'
import type { QueueView } from '../../src/queries/queue-view.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'
import { node, NODE_VIEW } from '../support/listed-nodes.ts'
import { wordsIn } from '../support/page-requests.ts'

const clock = new VirtualClock()

test('the settings of a node are equal, differ, or are not known because it is lost', () => {
  const lost = node('n3', { state: 'lost', shards: 0, lost: { time: 0, taken_over_by: 'n1', shards: 128, recipients: 4 } })
  const differing = node('n2', { settings_differ: true, differing_settings: ['delay_warning_time'] })
  const nodes = [node('n1'), differing, lost]
  const { main } = nodesScreen(NODE_VIEW, { nodes, lease: 5 })
  expect(main?.markup).toContain('<span data-live="nodes/n1/beat_age" data-form="span">1s</span> ago')
  const rows = [...(main?.markup ?? '').matchAll(/data-label="Version, settings">(.*?)<\/td>/gs)].map(([, cell = '']) =>
    wordsIn(`<main>${cell}`).trim(),
  )
  expect(rows).toEqual(['0.9.0, equal', '0.9.0, differ: delay_warning_time', '0.9.0'])
  const shown = nodes.map((one) => /settings +(.*)/.exec(nodeScreen(one, clock))?.[1])
  expect(shown).toEqual([
    'as those of the other nodes',
    'delay_warning_time differ from those of the other nodes',
    'unknown: the node is lost',
  ])
})

test('a drain of the last active node says that the relay stands still then, and the list says it afterwards', () => {
  const still = 'no mail is accepted or delivered: n1, n2 drain, and no other node is active'
  const [active, drained] = [node('n1'), node('n2', { state: 'draining' })]
  const question = (nodes: readonly NodeJson[]) => wordsIn(`<main>${nodeQuestion(NODE_VIEW, 'n1', 'drain', nodes).main?.markup ?? ''}`)
  expect(question([active, node('n2')])).toContain('It gives its destinations to the other nodes')
  expect(question([active, drained])).toContain('No other node is active: no mail is accepted and none is delivered')
  const listed = (nodes: readonly NodeJson[]) => wordsIn(`<main>${nodesScreen(NODE_VIEW, { nodes, lease: 5 }).main?.markup ?? ''}`)
  expect(listed([active, drained])).not.toContain('no mail is accepted')
  expect(listed([active, drained])).toContain('2 nodes share the queue, and all of them are alive. n2 drains, and takes no new mail.')
  expect(listed([node('n1', { state: 'draining' }), drained])).toContain(still)
})

test('a node with an old beat is not called silent unless the node that answers has seen it so: the database may have hung', async () => {
  const world = await ApiWorld.open('memory')
  try {
    const { view } = world.api.api
    const listed = ['n1', 'n2'].map((name, n) => ({ id: n + 1, name, settings: '{}', beatAge: 20_000, draining: false }))
    const nodesWith = (silent: readonly { readonly id: number; readonly name: string }[]): QueueView =>
      Object.create(view, {
        nodes: {
          value: () => ({
            me: 1,
            lease: 5_000,
            silent: () => silent,
            slots: async () => new Map(),
            nodes: { list: async () => listed, lost: async () => [] },
          }),
        },
      }) as QueueView
    const states = async (silent: Parameters<typeof nodesWith>[0]) =>
      (await nodeList(nodesWith(silent))).nodes?.map(({ state, beat_age: age }) => [state, age])
    expect(await states([])).toEqual([
      ['active', 20],
      ['active', 20],
    ])
    expect(await states([{ id: 2, name: 'n2' }])).toEqual([
      ['active', 20],
      ['silent', 20],
    ])
  } finally {
    await world.close()
  }
})

test('screens that show settings say whose they are, where the nodes differ', async () => {
  const world = await ApiWorld.open('memory')
  try {
    const id = await world.queue.accept(['ann@far.example'])
    await world.queue.advance(1_000)
    const { view } = world.api.api
    const listed = (settings: Readonly<Record<string, string>>) => ({ id: 1, settings: JSON.stringify(settings) })
    const nodesWith = (backoff: string, limits = 'a'): QueueView =>
      Object.create(view, {
        nodes: {
          value: () => ({
            silent: () => [],
            drained: () => [],
            unanswered: () => [],
            nodes: {
              list: async () => [
                listed({ minimal_backoff_time: 'a', 'quota."app" limits': 'a' }),
                listed({ minimal_backoff_time: backoff, 'quota."app" limits': limits }),
              ],
              lost: async () => [],
            },
          }),
        },
      }) as QueueView
    for (const place of [`messages/${id}`, 'destinations/far.example', 'planner']) {
      const remark = 'the nodes differ in minimal_backoff_time, and deliveries are by the settings of the node that has the destination'
      expect(wordsIn(await new PageScreens(world, nodesWith('b')).text(place))).toContain(remark)
      expect(wordsIn(await new PageScreens(world, nodesWith('a')).text(place))).not.toContain('the nodes differ')
    }
    expect(wordsIn(await new PageScreens(world, nodesWith('b')).text('quotas'))).not.toContain('the nodes differ')
    const quota = await new PageScreens(world, nodesWith('a', 'b')).text('quotas')
    expect(wordsIn(quota)).toMatch(/the nodes differ in quota\.\S+app\S+ limits, and each counts new mail by its own/)
  } finally {
    await world.close()
  }
})
