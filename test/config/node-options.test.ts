import { expect, test } from 'vitest'
import { configFrom, loadConfig } from '../../src/config/load.ts'

const URL = 'postgresql://deferd:s3cret@db1.example,db2.example/mail'

test('the database is taken from the environment, and its password is not written anywhere', () => {
  const loaded = loadConfig({ env: { DEFERD_CONFIG: '/dev/null', DEFERD_QUEUE_DATABASE: URL }, overrides: [], uid: 1, calledAs: 'deferd' })
  expect(loaded.config.queue_database).toBe(URL)
  expect(loaded.written.get('queue_database')).toBe('postgresql://deferd:***@db1.example,db2.example/mail')
  expect(JSON.stringify([...loaded.written])).not.toContain('s3cret')
})

test('a node is named after its machine', () => {
  expect(configFrom({}, 'n1.example').config.node_name).toBe('n1.example')
  expect(configFrom({ myhostname: 'mail.example', node_name: 'left' }, 'n1.example').config.node_name).toBe('left')
  expect(configFrom({ myhostname: 'mail.example' }, 'n1.example').config.node_name).toBe('n1.example')
})

test('a malformed URL is refused without its password', () => {
  const load = () => configFrom({ queue_database: 'postgresql://deferd:s3cret@db.example' })
  expect(load).toThrow(/queue_database: expected a URL such as/)
  expect(load).not.toThrow(/s3cret/)
})

test('a lease that is shorter than a slow commit is refused', () => {
  expect(() => configFrom({ node_lease: '1s' })).toThrow('node_lease: must be at least 2s')
  expect(configFrom({ node_lease: '2s' }).config.node_lease).toBe(2_000)
})
