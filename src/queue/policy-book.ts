/**
 * What holds where: the configuration compiled for the queue, one page for all destinations to which the same applies,
 * made when it is first asked for. A reload starts a new book.
 */
import { compileRetryPolicy } from '../backoff/retry-policy.ts'
import { doubleBounceAddress, warningAges } from '../bounce/notice.ts'
import { settingsFor, type EffectiveSettings, type Settings } from '../config/destination-settings.ts'
import type { Config } from '../config/options.ts'
import type { LifecycleFacts } from './lifecycle.ts'
import type { DestinationName } from './message.ts'

interface Page {
  readonly effective: EffectiveSettings
  readonly facts: LifecycleFacts
}

/** Destinations remembered: beyond that, their pages are looked up again. */
const DESTINATIONS = 10_000

export class PolicyBook {
  readonly #config: Config
  readonly #draw: (key: string) => number
  readonly #pages = new Map<EffectiveSettings, Page>()
  readonly #pageOf = new Map<DestinationName, Page>()

  constructor(config: Config, draw: (key: string) => number) {
    this.#config = config
    this.#draw = draw
  }

  settingsOf(destination: DestinationName): Settings {
    return this.#page(destination).effective.values
  }

  factsFor(destination: DestinationName): LifecycleFacts {
    return this.#page(destination).facts
  }

  #page(destination: DestinationName): Page {
    let page = this.#pageOf.get(destination)
    if (page === undefined) {
      // A recipient domain with a table of its own is a destination of its own, so the name finds either table.
      const effective = settingsFor(this.#config, destination, destination)
      page = this.#pages.get(effective) ?? this.#compile(effective)
      this.#pages.set(effective, page)
      const [oldest] = this.#pageOf.size >= DESTINATIONS ? this.#pageOf.keys() : []
      if (oldest !== undefined) this.#pageOf.delete(oldest)
      this.#pageOf.set(destination, page)
    }
    return page
  }

  #compile(effective: EffectiveSettings): Page {
    const config = this.#config
    const { retry_backoff, retry_jitter, minimal_backoff_time: minimal, maximal_backoff_time: maximal } = effective.values
    const facts: LifecycleFacts = {
      policy: compileRetryPolicy({ retry_backoff, minimal, maximal }),
      jitter: retry_jitter,
      draw: this.#draw,
      delayWarnings: warningAges(config),
      doubleBounceSender: doubleBounceAddress(config),
      confirmDelayCleared: config.confirm_delay_cleared,
      noticeClasses: config.notify_classes,
    }
    return { effective, facts }
  }
}
