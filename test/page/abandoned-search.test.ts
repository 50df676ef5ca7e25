/** A search for a screen ends when its browser has left. */
import { Senders } from '../../src/queries/counts/senders.ts'
import { expect, test } from 'vitest'
import type { QueueView } from '../../src/queries/queue-view.ts'
import { matchRoute } from '../../src/http/route-table.ts'
import { Page } from '../../src/page/web-page.ts'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import { ApiWorld } from '../support/api-world.ts'

const requester = { name: 'page:alice', role: 'viewer', content: false, destinations: null, address: '127.0.0.1', requestId: 'r' } as const

/** The same reader, with the names of its methods as they are called. */
const observed = (reader: QueueReader, called: (name: string) => void): QueueReader =>
  new Proxy(reader, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      called(String(name))
      return method.bind(target) as unknown
    },
  })

test('the search for a list of messages reads no more of the queue after its browser has left', async () => {
  const world = await ApiWorld.open('memory')
  try {
    await world.fill(60)
    const { view, now, causes } = world.api.api
    const searched = async (leaves: boolean): Promise<readonly string[]> => {
      const gone = new AbortController()
      const calls: string[] = []
      const reader = observed(view.reader, (name) => {
        if (['list', 'find', 'survey', 'count'].includes(name)) calls.push(name)
        if (leaves) gone.abort()
      })
      const seen = new Proxy(view, { get: (target, name) => (name === 'reader' ? reader : (Reflect.get(target, name) as unknown)) })
      const page = new Page({ view: seen satisfies QueueView, now, causes, senders: new Senders(view) })
      const match = matchRoute(page.routes, 'GET', '/messages')
      if (match.kind !== 'found') throw new Error('no such screen')
      const query = new URLSearchParams({ reply: 'busy' })
      const client = { address: '127.0.0.1', scheme: 'http', host: 'localhost', user: null } as const
      const answer = match.route.handler({ parameters: {}, query, headers: {}, body: undefined, requester, client, signal: gone.signal })
      if (leaves) await expect(answer).rejects.toThrow(/aborted/)
      else await answer
      return calls
    }
    expect((await searched(false)).length).toBeGreaterThan(1)
    expect(await searched(true)).toEqual(['list'])
  } finally {
    await world.close()
  }
})
