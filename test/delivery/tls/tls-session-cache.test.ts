import { expect, test } from 'vitest'
import { TlsSessionCache } from '../../../src/delivery/tls/tls-session-cache.ts'

test('keeps the newest session of a key until it is dropped', () => {
  const cache = new TlsSessionCache()
  expect(cache.offer('mx may')).toBeUndefined()
  cache.keep('mx may', Buffer.from('1'))
  cache.keep('mx may', Buffer.from('2'))
  expect([cache.offer('mx may')?.toString(), cache.offer('mx verify')]).toEqual(['2', undefined])
  cache.forget('mx may')
  expect(cache.offer('mx may')).toBeUndefined()
})

test('keeps a thousand sessions, and drops the oldest', () => {
  const cache = new TlsSessionCache()
  for (let n = 0; n < 1000; n++) cache.keep(`mx${n}`, Buffer.from(`${n}`))
  cache.keep('mx0', Buffer.from('again'))
  cache.keep('another', Buffer.from('x'))
  expect([cache.offer('mx0')?.toString(), cache.offer('mx1'), cache.offer('mx2')?.toString()]).toEqual(['again', undefined, '2'])
})
