/** Nodes of a shared queue as the API lists them, and a view of the page for an administrator. */
import { sampleView } from './sample-view.ts'
import type { NodeJson } from '../../src/resources/node-json.ts'

export const NODE_VIEW = sampleView('nodes')

export const node = (name: string, more: Partial<NodeJson> = {}): NodeJson => ({
  node: 1,
  name,
  state: 'active',
  answers: false,
  shards: 128,
  leased: 0,
  deliveries: null,
  beat_age: 1,
  lost: null,
  settings_differ: false,
  differing_settings: [],
  version: '0.9.0',
  joined: 0,
  ...more,
})
