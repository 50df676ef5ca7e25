/** Classes and shares of the mail of a scenario, which no client submits. */
import type { Config } from '../../config/options.ts'
import type { Message } from '../../mail/message.ts'
import { ClassChoice, openClassMaps } from '../../queue/intake/class-choice.ts'
import { shareOf } from '../../queue/intake/share-key.ts'
import { openShareWeights, ShareWeights } from '../../queue/intake/share-weights.ts'
import { NO_SHARE } from '../../queue/scheduler/turns/flow.ts'
import type { Stream } from './scenario-file.ts'
import type { RecordedShare } from './scenario-record.ts'

type Ordered = Pick<Message, 'class' | 'share'>

export class ScenarioShares {
  readonly #key: Config['share_key']
  /** Null without classes. */
  readonly #classes: ClassChoice | null
  /** Null without fair shares. */
  readonly #weights: ShareWeights | null

  constructor(config: Config) {
    this.#key = config.share_key
    this.#classes = ClassChoice.of(config, openClassMaps(config).maps)
    this.#weights = ShareWeights.of(config, openShareWeights(config).table)
  }

  /** The members of a message of a stream. Mail has no login, token or address of a client. */
  orderOf({ sender, class: named }: Stream): Ordered {
    const origin = { sender, user: undefined, address: null }
    return {
      class: this.#classes?.classOf({ ...origin, listenerClass: named, asked: undefined }),
      share: this.#weights === null ? undefined : shareOf(this.#key, origin),
    }
  }

  /** Null without classes and fair shares. */
  recorded({
    class: name = null,
    share: key = NO_SHARE,
  }: {
    readonly class?: string | undefined | null
    readonly share?: string | undefined
  }): RecordedShare | null {
    if (this.#classes === null && this.#weights === null) return null
    return { class: name, key, weight: this.#weights?.weightOf(key) ?? 1 }
  }
}
