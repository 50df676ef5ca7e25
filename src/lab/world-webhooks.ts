/** Webhooks of a world of the lab: recorded with scripted answers, or posted to the application, for which the clock of the world stands. */
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { isoInstant } from '../mail/mail-date.ts'
import type { MachineClock } from '../system/clock.ts'
import type { Application, Webhook, WebhookOptions } from '../testkit/scripted/webhook.ts'
import type { World } from '../testkit/world.ts'
import { LAB_PROBLEMS } from './lab-problems.ts'
import type { WebhookTargets } from './webhook-targets.ts'

interface WorldWebhooksDeps {
  readonly world: World
  /** Clock of the machine. */
  readonly clock: MachineClock
  readonly targets: WebhookTargets
  /** Aborts when the world closes. */
  readonly closing: AbortSignal
}

interface NewWebhook extends WebhookOptions {
  readonly name: string
  /** URL of the application; null for a webhook that is only recorded. */
  readonly url: string | null
  /** Clock of the signatures: verifiers compare them with their own clock, which is not that of the world. */
  readonly timestamps: 'real' | 'virtual'
}

export class WorldWebhooks {
  readonly #deps: WorldWebhooksDeps
  readonly #webhooks = new Map<string, Webhook>()
  #hasApplication = false

  constructor(deps: WorldWebhooksDeps) {
    this.#deps = deps
  }

  /** True when an application in another process has answered, or may have. */
  get hasApplication(): boolean {
    return this.#hasApplication
  }

  /** Adds a webhook. Rejects with Problem when the name is in use, and for a target that is not allowed. */
  async add({ name, url, timestamps, ...options }: NewWebhook): Promise<Webhook> {
    const { world } = this.#deps
    if (this.#webhooks.has(name)) throw new Problem(LAB_PROBLEMS.nameTaken, `there is a webhook ${name} already: choose another name`)
    const application = url === null ? null : await this.#applicationAt(new URL(url), timestamps)
    const webhook = await world.addWebhook(name, options, application)
    this.#webhooks.set(name, webhook)
    if (application !== null) this.#hasApplication = true
    return webhook
  }

  /** The webhook of a name. Throws Problem without one. */
  named(name: string): Webhook {
    const found = this.#webhooks.get(name)
    if (found !== undefined) return found
    const names = [...this.#webhooks.keys()]
    const known = names.length === 0 ? 'the world has none' : `webhooks are ${names.join(', ')}`
    throw new Problem(HTTP_PROBLEMS.unknown, `there is no webhook ${name}: ${known}`)
  }

  async #applicationAt(url: URL, timestamps: NewWebhook['timestamps']): Promise<Application> {
    const { world, clock, targets, closing } = this.#deps
    const poster = await targets.posterTo(url)
    return {
      signedAt: () => (timestamps === 'real' ? clock.now() : world.now()),
      headers: () => ({ 'deferd-lab-time': isoInstant(world.now()) }),
      post: (request, signal) => poster.post(url, request, { allowPrivate: true, signal: AbortSignal.any([signal, closing]) }),
    }
  }
}
