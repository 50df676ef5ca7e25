import { WallView } from '../../../src/system/wall-view.ts'
import { expect, test } from 'vitest'
import { destinationTable, destinationValues } from '../../../src/cli/render/destination-rows.ts'
import { isIdle, sortedDestinations } from '../../../src/queries/destination-list.ts'
import { destinationJson, type DestinationJson } from '../../../src/resources/destination-json.ts'
import type { DestinationRecord } from '../../../src/store/queue-store.ts'

const NOW = 1_000_000_000
const record = (name: string, more: Partial<DestinationRecord>): DestinationRecord => ({
  name,
  deadUntil: null,
  probeInterval: null,
  suspension: null,
  siteStatus: null,
  ...more,
})
const row = (name: string, waiting: number, more: Partial<DestinationRecord> = {}): DestinationJson => {
  const load = waiting === 0 ? undefined : { destination: name, waiting, leased: 0, nextDueAt: NOW + 300_000 }
  return destinationJson({ name, live: undefined, provider: null, load, record: record(name, more) }, null, new WallView(() => NOW))
}

const busy = row('isp.example', 1_200)
const dead = row('dead.example', 7, {
  deadUntil: NOW + 60_000,
  probeInterval: 60_000,
  siteStatus: {
    status: '4.7.0',
    reason: 'host mx said: 421 4.7.0 Too much',
    reply: `421 4.7.0 Too much ${'mail '.repeat(20)}`,
    stage: 'connect',
  },
})
const shut = row('shut.example', 0, { suspension: { by: 'root', until: NOW + 7_200_000, reason: 'maintenance' } })
const idle = row('idle.example', 0)

test('the most waiting mail is first; dead and suspended destinations have their reason, wrapped', () => {
  const facts = { now: NOW, display: { width: 60, coloured: false } }
  expect(
    destinationTable(
      sortedDestinations([idle, shut, dead, busy], 'waiting').filter((one) => !isIdle(one)),
      1,
      facts,
    ),
  ).toBe(
    [
      'DESTINATION  STATE       WAITING  ACTIVE    NEXT',
      'isp.example  open          1,200       0      5m',
      'dead.example dead              7       0      1m',
      '    421 4.7.0 Too much mail mail mail mail mail mail mail',
      '    mail mail mail mail mail mail mail mail mail mail mail',
      '    mail mail',
      'shut.example suspended         0       0      2h',
      '    suspended by root, ends in 2h: maintenance',
      '1 idle destination not shown (--all)',
      '',
    ].join('\n'),
  )
})

test('orders by name, state and next attempt', () => {
  const names = (sort: Parameters<typeof sortedDestinations>[1]) =>
    sortedDestinations([busy, shut, idle, dead], sort).map(({ destination }) => destination.split('.')[0])
  expect(names('name')).toEqual(['dead', 'idle', 'isp', 'shut'])
  expect(names('state')).toEqual(['dead', 'shut', 'idle', 'isp'])
  expect(names('next')).toEqual(['dead', 'isp', 'shut', 'idle'])
})

test('tab-separated values are exact', () => {
  expect(destinationValues(busy, NOW)).toBe('isp.example\t1200\t0\t-\t1970-01-12T13:51:40.000Z\topen\t')
})
