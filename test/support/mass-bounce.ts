/** Messages of which a rule of the remote side returns one recipient by mistake, and `deferd history resend` after its repair. */
import { expect } from 'vitest'
import { systemClock } from '../../src/system/system-clock.ts'
import { KillableRelay } from './killable-relay.ts'
import { Operator } from './operator.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

const SELECTED = ['--status', '5.7.1', '--since', '2h'] as const

/** A daemon whose remote side has refused the last recipient of each message. */
export class MassBounce {
  readonly lab = new KillableRelay({ returned_content_retention: '7d' })
  readonly operator = new Operator()

  /** Names of the recipients of each message that got it. */
  readonly #delivered: readonly string[]

  private constructor(delivered: readonly string[]) {
    this.#delivered = delivered
  }

  static async of(messages: number, delivered: readonly string[] = ['ann']): Promise<MassBounce> {
    const bounce = new MassBounce(delivered)
    const { lab } = bounce
    lab.far.hasRule = true
    await lab.open(4, (number) => [...delivered, 'ruled'].map((name) => `${name}-${number}@far.example`))
    await lab.startDaemon()
    await lab.acknowledges(messages)
    await lab.quiet()
    while (lab.far.noticedAbout.size < bounce.messages) await pause(50)
    bounce.expectCopies({ ruled: 0 })
    lab.far.hasRule = false
    return bounce
  }

  get messages(): number {
    return this.lab.acknowledged.size
  }

  /** Numbers of messages by the number of copies that a recipient of them got. */
  #copies(name: string): Readonly<Record<number, number>> {
    const copies = [...this.lab.acknowledged.keys()].map(
      (number) => this.lab.far.deliveredTo.get(`${name}-${number}@far.example`)?.length ?? 0,
    )
    return Object.fromEntries([...Map.groupBy(copies, (count) => count)].map(([count, those]) => [count, those.length]))
  }

  /** Each message has reached the refused recipient so many times, and each other recipient once. */
  expectCopies({ ruled }: { readonly ruled: number }): void {
    for (const name of this.#delivered) expect([name, this.#copies(name)]).toEqual([name, { 1: this.messages }])
    expect(this.#copies('ruled')).toEqual({ [ruled]: this.messages })
  }

  /** Waits until each recipient has got a message, and then for one that would be too much. */
  async rests(): Promise<void> {
    while (this.lab.far.deliveredTo.size < (this.#delivered.length + 1) * this.messages) await pause(50)
    await pause(3_000)
  }

  /** Sends again, with SIGKILL of the daemon when a fifth of the messages is sent, and again, until all are sent. */
  async resendThroughKills(): Promise<void> {
    const { lab, messages } = this
    // A delivery that SIGKILL cuts would be repeated: none succeeds until the last start.
    lab.far.isBusy = true
    const reader = await lab.openReader()
    try {
      for (const operation of [1, 2, 3]) {
        const cut = this.resend()
        while (((await reader.records.audit.one(operation))?.changed ?? 0) < messages / 5) await pause(2)
        await lab.die(0)
        expect((await cut).code).not.toBe(0)
        await lab.startDaemon()
      }
    } finally {
      await reader.close()
    }
    // A daemon on a busy machine may have sent all messages before the last SIGKILL.
    expect([0, 65]).toContain((await this.resend()).code)
    expect(await this.resend()).toMatchObject({ code: 65 })
    lab.far.isBusy = false
  }

  run(...words: readonly string[]) {
    const env = { DEFERD_QUEUE_DIRECTORY: this.lab.queueDirectory }
    return this.operator.run(words, { env, clock: systemClock })
  }

  resend(...more: readonly string[]) {
    return this.run('history', 'resend', ...SELECTED, ...more)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lab.close()
    this.operator.leave()
  }
}
