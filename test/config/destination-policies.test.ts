import { describe, expect, test } from 'vitest'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { configFrom } from '../../src/config/load.ts'
import type { Config } from '../../src/config/options.ts'
import { Router } from '../../src/delivery/routing/router.ts'

/** A configuration with a table for each of these names; its minimal_backoff_time is the position, in seconds. */
function configWith(tables: readonly string[], more: Partial<Config> = {}): Config {
  const { config } = configFrom({ minimal_backoff_time: '300s' }, 'relay.example')
  const destination = new Map(tables.map((name, position) => [name, { minimal_backoff_time: (position + 1) * 1000 }]))
  return { ...config, destination, ...more }
}

const tableOf = (tables: readonly string[], destination: string) => new DestinationPolicies(configWith(tables)).for(destination).table

describe('the table that applies to a destination', () => {
  test('exact domain first, then parent domains, the longest first', () => {
    const tables = ['a.b.example', '.b.example', '.example']
    expect(['a.b.example', 'c.b.example', 'd.example', 'example', 'other.test'].map((name) => tableOf(tables, name))).toEqual([
      'a.b.example',
      '.b.example',
      '.example',
      null,
      null,
    ])
  })

  test('a name with a transport is no domain: only a table of exactly this name applies', () => {
    expect(tableOf(['.example'], 'smtp:a.example,b.example')).toBeNull()
    expect(tableOf(['.example', 'smtp:[10.0.0.1]:2525'], 'smtp:[10.0.0.1]:2525')).toBe('smtp:[10.0.0.1]:2525')
  })

  test('mail that shares a destination shares its policy, whatever domain it is for', () => {
    const config = configWith(['.relays.example'], { relayhost: ['mx.relays.example'] })
    const router = new Router(config, new Map())
    const policies = new DestinationPolicies(config)
    const [behind, own] = ['ann@far.example', 'bob@mx.relays.example'].map((address) => router.route(address, '').destination)
    expect([behind, own]).toEqual(['mx.relays.example', 'mx.relays.example'])
    expect(policies.for('mx.relays.example')).toMatchObject({ table: '.relays.example', settings: { minimal_backoff_time: 1000 } })
  })
})

describe('the cache', () => {
  test('holds one policy for each table, however many destinations share it', () => {
    const policies = new DestinationPolicies(configWith(['.example']))
    const plain = policies.for('d0.test')
    for (let n = 1; n <= 20_000; n++) expect(policies.for(`d${n}.test`)).toBe(plain)
    expect(policies.for('a.example')).toBe(policies.for('b.example'))
    expect(policies.for('a.example')).not.toBe(plain)
  })

  test('compiles the retry policy of each table with its own limits', () => {
    const policies = new DestinationPolicies(configWith(['a.example']))
    expect(policies.for('a.example').retry.bounds?.minimal).toBe(1000)
    expect(policies.for('b.example').retry.bounds?.minimal).toBe(300_000)
  })
})
