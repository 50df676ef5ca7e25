/** The screens of the page over the queue of an ApiWorld, as text and without HTTP. */
import { matchRoute, type Answer, type RouteRequest } from '../../src/http/route-table.ts'
import type { Requester } from '../../src/http/requests/requester.ts'
import { Page } from '../../src/page/web-page.ts'
import type { Now } from '../../src/queries/now.ts'
import type { QueueView } from '../../src/queries/queue-view.ts'
import type { ApiWorld } from './api-world.ts'

export const ADMIN: Requester = {
  name: 'page:ann',
  role: 'admin',
  content: true,
  destinations: null,
  address: '127.0.0.1',
  requestId: 'r-page',
}

const ORIGIN = 'http://page.example/'

export class PageScreens {
  readonly page: Page

  /** `view` and `now` are those of the world, unless a test watches or changes them. */
  constructor({ api: { api } }: ApiWorld, view: QueueView = api.view, now: Now = api.now) {
    this.page = new Page({ view, now, causes: api.causes, senders: api.senders })
  }

  /** The markup of a screen, such as `messages?queue=hold`. */
  async text(path: string, requester: Requester = ADMIN): Promise<string> {
    const answer = await this.screen(path, requester)
    if (answer.kind !== 'text') throw new Error(`${path} has no text`)
    return answer.text
  }

  /** The answer to a request for a screen. */
  screen(path: string, requester: Requester = ADMIN): Promise<Answer> {
    return this.#answer('GET', new URL(path, ORIGIN), { requester, body: undefined })
  }

  /** The place to which a screen leads, or a form after it was sent. */
  async location(method: 'GET' | 'POST', path: string, body?: unknown): Promise<string> {
    const answer = await this.#answer(method, new URL(path, ORIGIN), { requester: ADMIN, body })
    if (answer.kind !== 'redirect') throw new Error(`${path} does not lead elsewhere`)
    return answer.location
  }

  /** The screen that answers a form that was sent. */
  async sent(path: string, body: unknown): Promise<Extract<Answer, { kind: 'text' }>> {
    const answer = await this.#answer('POST', new URL(path, ORIGIN), { requester: ADMIN, body })
    if (answer.kind !== 'text') throw new Error(`${path} leads elsewhere`)
    return answer
  }

  async #answer(method: string, url: URL, { requester, body }: Pick<RouteRequest<unknown>, 'requester' | 'body'>): Promise<Answer> {
    const match = matchRoute(this.page.routes, method, url.pathname)
    if (match.kind !== 'found') throw new Error(`there is no ${url.pathname}`)
    return match.route.handler({
      parameters: match.parameters,
      query: url.searchParams,
      headers: {},
      body,
      requester,
      client: { address: '127.0.0.1', scheme: 'http', host: url.host, user: null },
      signal: new AbortController().signal,
    })
  }
}
