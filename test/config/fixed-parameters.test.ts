/** The parameters that a reload leaves as they were at the start. */
import { expect, test } from 'vitest'
import { withFixed } from '../../src/config/fixed-parameters.ts'
import { configFrom } from '../../src/config/load.ts'

const DATABASE = 'postgresql://deferd:one@db.example/mail'
const read = (values: Readonly<Record<string, unknown>>) => configFrom(values, 'mx1.example')

test('place of the queue, name and lease of the node and resolver stay; all else is as it was read', () => {
  const former = read({ queue_database: DATABASE, node_name: 'mx1', maximal_queue_lifetime: '2d' })
  const changed = read({
    queue_directory: '/elsewhere',
    queue_database: 'postgresql://deferd:one@other.example/mail',
    queue_database_durability: 'primary',
    node_name: 'mxone',
    node_lease: '8s',
    dns_servers: ['127.0.0.1:53'],
    maximal_queue_lifetime: '3d',
  })
  const { loaded, kept } = withFixed(changed, former)
  expect(kept).toEqual(['queue_directory', 'queue_database', 'queue_database_durability', 'node_name', 'node_lease', 'dns_servers'])
  for (const name of kept) {
    expect(loaded.config[name]).toEqual(former.config[name])
    expect(loaded.written.get(name)).toBe(former.written.get(name))
    expect(loaded.whereOf(name)).toBe(former.whereOf(name))
  }
  expect(loaded.config.maximal_queue_lifetime).toBe(changed.config.maximal_queue_lifetime)
  expect(loaded.written.get('maximal_queue_lifetime')).toBe('3d')
})

test('another password of the database is read', () => {
  const changed = read({ queue_database: DATABASE.replace('one', 'two') })
  const { loaded, kept } = withFixed(changed, read({ queue_database: DATABASE }))
  expect(kept).toEqual([])
  expect(loaded.config.queue_database).toBe('postgresql://deferd:two@db.example/mail')
})
