/**
 * The DeliveryAgent of the daemon: SMTP and LMTP over the Net port, and the two transports that need no network,
 * `discard:` and `error:`. All mail of a request goes the way of its first recipient: they share a destination.
 */
import type { Socket } from 'node:net'
import type { Config } from '../config/options.ts'
import type { Clock } from '../mail/clock.ts'
import type { Random } from '../mail/random.ts'
import type { DeliveryRequest, Message } from '../queue/message.ts'
import { Attempt, type AttemptParts } from './attempt.ts'
import { ConnectionCache } from './connection-cache.ts'
import type { AttemptResult, DeliveryAgent, DeliveryOptions, RecipientOutcome } from './delivery-agent.ts'
import type { ReadBody } from './message-source.ts'
import { HostFinder } from './mx.ts'
import type { Net } from './net.ts'
import type { Route, Router } from './route.ts'
import { SaslPasswords } from './sasl-passwords.ts'
import { TlsPolicies, type TlsFiles } from './tls-policy.ts'
import { TlsTickets } from './tls-tickets.ts'

/** What stands in the files that the configuration names; src/system reads them. */
export interface DeliverySecrets {
  /** smtp_sasl_password_maps */
  readonly passwords?: string | undefined
  readonly tls?: TlsFiles | undefined
}

export interface SmtpAgentParts {
  readonly config: Config
  readonly router: Router
  readonly net: Net
  readonly clock: Clock
  readonly random: Random
  /** The n-th part of a stored content; undefined after the last. */
  readonly readBody: ReadBody
  /** The content of a message that is still in memory. */
  readonly warmBody?: ((message: Message) => readonly Uint8Array[] | undefined) | undefined
  /** Needed when the configuration names files of keys or passwords. */
  readonly secrets?: DeliverySecrets | undefined
  /** Takes a line for the log. */
  readonly note: (text: string) => void
}

export class SmtpAgent implements DeliveryAgent {
  readonly #router: Router
  readonly #clock: Clock
  readonly #cache: ConnectionCache
  readonly #leaving = new Set<Socket>()
  readonly #parts: AttemptParts

  /** Throws with a sentence for the operator when TLS policies or passwords make no sense. */
  constructor({ config, router, net, clock, random, readBody, warmBody, secrets = {}, note }: SmtpAgentParts) {
    this.#router = router
    this.#clock = clock
    this.#cache = new ConnectionCache(clock)
    const finder = new HostFinder({ net, config, draw: random.stream('hosts of equal preference') })
    if (config.smtp_sasl_password_maps !== '' && secrets.passwords === undefined) throw new Error('smtp_sasl_password_maps was not read')
    const tls = new TlsPolicies(config, secrets.tls ?? {})
    const passwords = new SaslPasswords(secrets.passwords ?? '', config)
    const shared = { cache: this.#cache, leaving: this.#leaving, tickets: new TlsTickets() }
    this.#parts = { config, net, clock, finder, ...shared, tls, passwords, readBody, warmBody, note }
  }

  async deliver(request: DeliveryRequest, options: DeliveryOptions): Promise<AttemptResult> {
    const route = this.#router.route(request.recipients[0]?.address ?? '')
    switch (route.transport) {
      case 'smtp':
      case 'lmtp':
        return new Attempt(this.#parts, route, request, options).run()
      case 'discard':
        return this.#offline(request, { outcome: 'delivered', status: '2.0.0', reason: discardText(route), stage: 'route' })
      case 'error': {
        const outcome = route.status.startsWith('4') || this.#parts.config.soft_bounce ? 'deferred' : 'bounced'
        const status = outcome === 'deferred' ? route.status.replace(/^5/, '4') : route.status
        return this.#offline(request, { outcome, status, reason: route.text, stage: 'route' })
      }
    }
  }

  async close(): Promise<void> {
    this.#cache.close()
    // They get their QUIT, and nobody waits for them to hang up.
    for (const socket of this.#leaving) socket.destroySoon()
  }

  /** The same for every recipient, and nobody was asked. */
  #offline(request: DeliveryRequest, outcome: RecipientOutcome): AttemptResult {
    const now = this.#clock.now()
    return {
      outcomes: new Map(request.recipients.map(({ id }) => [id, outcome])),
      feedback: 'positive',
      relay: null,
      connectionUse: 1,
      times: { startedAt: now, transmittingAt: now, endedAt: now },
    }
  }
}

const discardText = ({ text }: Extract<Route, { transport: 'discard' }>): string =>
  `delivered via discard service${text === '' ? '' : `: ${text}`}`
