/** Subscriptions of the configuration: secrets that sign, and nodes that must not send. */
import { expect, test } from 'vitest'
import type { EventsTable } from '../../src/config/values/tables/event-tables.ts'
import { ALL_EVENTS, obstacleTo, settingsOf, signingSecrets } from '../../src/outbox/configured-subscriptions.ts'
import { newProgress, type Subscription } from '../../src/store/outbox/subscription.ts'

const TABLE: EventsTable = { ...ALL_EVENTS, to: 'https://hooks.example/', secrets: ['whsec_new', 'whsec_old'], where: 'deferd.toml:3' }
const subscription = (more: Partial<Subscription> = {}): Subscription => ({
  name: 'app',
  owner: 'configuration',
  settings: settingsOf(TABLE),
  createdAt: 0,
  createdBy: '',
  progress: newProgress(0),
  ...more,
})
const events = new Map([['app', TABLE]])

test('the configuration has the secrets of its subscriptions, and the queue those of commands', () => {
  expect(signingSecrets(subscription(), { events }, 5)).toEqual(['whsec_new', 'whsec_old'])
  const secrets = [
    { secret: 'whsec_c', until: null },
    { secret: 'whsec_b', until: 6 },
    { secret: 'whsec_a', until: 5 },
  ]
  const own = subscription({ owner: 'command', settings: { ...settingsOf(TABLE), secrets } })
  expect(signingSecrets(own, { events }, 5)).toEqual(['whsec_c', 'whsec_b'])
})

test('a node sends the subscriptions of its own tables, and those of commands', () => {
  const stored = JSON.parse(JSON.stringify(settingsOf(TABLE))) as Subscription['settings']
  expect(obstacleTo(subscription({ settings: stored }), { events })).toBeNull()
  expect(obstacleTo(subscription({ owner: 'command', name: 'other' }), { events })).toBeNull()
  expect(obstacleTo(subscription({ name: 'other' }), { events })).toContain('has no [events.other] table')
  expect(obstacleTo(subscription({ settings: { ...stored, to: 'https://old.example/' } }), { events })).toContain('differs')
})
