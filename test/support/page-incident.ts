/**
 * The story of an incident at the page: a destination refuses connections with 421 and most of the mail for it comes from one sender.
 * The operator finds the sender, suspends the destination, deletes the sender's mail, takes that back, and releases all mail at the
 * end. A real browser does it, and its clicks are counted; a field that is filled counts as one.
 */
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { fillBacklog } from './backlog.ts'
import { until } from './node-cluster.ts'
import { PageDaemon } from './page-daemon.ts'
import { RemoteLedger } from './remote-ledger.ts'

const CAUSE = 'news@shop.example'
const REPLY = '421 4.7.0 Too many messages from your network, try again later'

/** One message of 100 comes from another sender. */
const senderOf = (n: number): string => (n % 100 === 0 ? 'orders@shop.example' : CAUSE)

const grouped = (value: number): string => value.toLocaleString('en')

/** Time that a step may take for 10,000 messages on a busy machine, in ms. */
const PATIENCE = 50_000

export class Incident {
  readonly destination: string
  readonly daemon: PageDaemon
  readonly #remote: RemoteLedger
  readonly #messages: number
  readonly #patience: number
  #clicks = 0

  private constructor(daemon: PageDaemon, remote: RemoteLedger, { destination, messages }: { destination: string; messages: number }) {
    this.daemon = daemon
    this.#remote = remote
    this.destination = destination
    this.#messages = messages
    this.#patience = PATIENCE * Math.ceil(messages / 10_000)
  }

  /** Begins with deferred mail of two senders for a server that refuses connections. */
  static async begin(messages: number): Promise<Incident> {
    const remote = new RemoteLedger()
    remote.refusal = REPLY
    const port = await remote.listen()
    const destination = `smtp:[127.0.0.1]:${port}`
    const reason = `host 127.0.0.1[127.0.0.1] refused to talk to me: ${REPLY}`
    // The first refusal closes the destination, so that one message, of the other sender, waits for a due time of its own.
    const settings = { relayhost: `[127.0.0.1]:${port}`, initial_destination_concurrency: 1 }
    const daemon = await PageDaemon.start(settings, async (queueDirectory) => {
      const { store, close } = await openStore(queueDirectory, { threads: false, create: true })
      await fillBacklog(store, {
        messages,
        now: Date.now() - 60_000,
        destinationOf: () => destination,
        dueIn: () => 0,
        senderOf,
        contentOf: (n) => Buffer.from(`X-Number: ${n}\r\nSubject: letter\r\n\r\nhello\r\n`),
        last: { status: '4.7.0', reason, reply: REPLY, stage: 'connect' },
      })
      await close()
    })
    return new Incident(daemon, remote, { destination, messages })
  }

  /** Plays the story in a page that is logged in and shows Now. Returns the number of clicks. An error has the screen where it ended. */
  async play(page: Page): Promise<number> {
    page.setDefaultTimeout(this.#patience)
    try {
      return await this.#steps(page)
    } catch (cause) {
      const text = (await page.locator('body').innerText()).replace(/\s+/g, ' ')
      throw new Error(`after ${this.#clicks} clicks, at ${page.url()}: ${text.slice(0, 1_500)}`, { cause })
    }
  }

  async #steps(page: Page): Promise<number> {
    const ofCause = this.#messages - Math.ceil(this.#messages / 100)
    const [all, guilty] = [grouped(this.#messages), grouped(ofCause)]
    await until('dead', this.#patience, async () => {
      await page.reload()
      return (
        (await page
          .locator('.attention li', { hasText: /probed in/ })
          .getByText(`${all} recipients wait`)
          .count()) > 0
      )
    })

    // Found: the destination, and the sender of most of its mail.
    await this.#click(page.locator('table.where').getByRole('link', { name: this.destination }))
    await page.getByText('421 4.7.0 Too many messages').first().waitFor()
    await this.#click(page.getByRole('link', { name: 'Suspend…' }))
    await this.#click(page.getByRole('button', { name: 'Suspend' }))
    await page.getByText('Suspended by page:alice').waitFor()

    // Deleted, and undone.
    await this.#operate(page, 'Delete…', ofCause)
    await page.getByText(`${guilty} messages were moved to the trash.`).waitFor()
    await this.#click(page.getByRole('button', { name: 'Undo' }))
    await page.getByText(`${guilty} messages were restored.`).waitFor()

    // Put on hold, while the mail of the others is delivered.
    await this.#click(page.getByRole('link', { name: 'Back' }))
    await this.#operate(page, 'Hold…', ofCause)
    await page.getByText(`${guilty} messages were put on hold.`).waitFor()
    this.#remote.refusal = null
    await this.#click(page.getByRole('link', { name: 'Back' }))
    await this.#click(page.getByRole('link', { name: 'Resume…' }))
    await this.#click(page.getByRole('button', { name: 'Resume' }))
    await this.#click(page.getByRole('link', { name: 'Flush…' }))
    await page.getByRole('heading', { name: /^Flush \d+ messages?\?$/ }).waitFor()
    await this.#click(page.getByRole('button', { name: /^Flush [\d,]+ messages?$/ }))
    await page.getByText(/made due\.$/).waitFor()
    await until('delivered', this.#patience, () => this.#remote.delivered.size === this.#messages - ofCause)

    // Released.
    await this.#click(page.getByRole('button', { name: /^System/ }))
    await this.#click(page.getByRole('link', { name: 'Audit', exact: true }))
    await this.#click(page.getByRole('row').filter({ hasText: 'hold' }).getByRole('button', { name: 'Undo' }))
    await page.getByText(`${guilty} messages were released.`).waitFor()
    await until('released mail is delivered', this.#patience, () => this.#remote.delivered.size === this.#messages)
    expect([...this.#remote.delivered.values()].filter((times) => times !== 1)).toEqual([])
    return this.#clicks
  }

  async close(): Promise<void> {
    await this.daemon.close()
    await this.#remote.close()
  }

  /** Plans an operation on the mail of the cause, and carries it out. */
  async #operate(page: Page, link: string, messages: number): Promise<void> {
    await this.#click(page.getByRole('row').filter({ hasText: CAUSE }).getByRole('link', { name: link }))
    await this.#confirm(page, messages)
  }

  async #confirm(page: Page, messages: number): Promise<void> {
    await page.getByRole('heading', { name: new RegExp(`^\\w+ ${grouped(messages)} messages?\\?$`) }).waitFor()
    if (messages > 1_000) {
      await page.getByLabel(`Type ${grouped(messages)} to confirm`).fill(String(messages))
      this.#clicks++
    }
    await this.#click(page.getByRole('button', { name: new RegExp(`^\\w+ ${grouped(messages)} messages?$`) }))
  }

  async #click(target: Locator): Promise<void> {
    await target.click()
    this.#clicks++
  }
}
