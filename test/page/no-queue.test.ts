/** The page of a daemon whose queue is not open: while the daemon starts, and while its node joins the queue again. */
import { expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { queueApi, NOT_OPEN } from '../../src/daemon/queue-api.ts'
import { problemOf } from '../../src/http/problem-details.ts'
import { ToldAddresses } from '../../src/mail/told-addresses.ts'
import { Page } from '../../src/page/web-page.ts'
import { StoreUnavailable } from '../../src/store/queue-store.ts'
import { realClock } from '../support/real-clock.ts'

const loaded = configFrom({ class: { fast: { weight: 2 }, slow: { weight: 1 } }, default_class: 'slow' }, 'relay.example')
const { view, now, causes, senders } = queueApi({
  clock: realClock,
  loaded: () => loaded,
  addresses: new ToldAddresses(),
  parts: () => null,
})
const page = new Page({ view, now, causes, senders })

test('says on the screen of a failed request that the queue is not open', () => {
  const headers = { accept: 'text/html' }
  const answer = page.refusal(problemOf(new StoreUnavailable(NOT_OPEN)), { path: '/messages/4jdZs', headers, requester: null })
  if (answer.kind !== 'text') throw new Error(`answered with ${answer.kind}`)
  expect(answer.status).toBe(503)
  expect(answer.text).toContain(NOT_OPEN.slice(1))
  expect(answer.text).toContain('relay.example')
})
