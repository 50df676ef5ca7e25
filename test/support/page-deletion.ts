/**
 * A bulk deletion at the page of a daemon in a process of its own, while mail flows: its dry run, its progress, its cancel or the end of
 * the daemon by SIGKILL in the middle, and its undo.
 */
import { join } from 'node:path'
import { expect } from 'vitest'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { DAY } from '../../src/system/clock.ts'
import { fillBacklog } from './backlog.ts'
import { until } from './node-cluster.ts'
import { PageClient, textOf, type PageScreen } from './page-client.ts'
import { portBelowEphemeral } from './ports.ts'
import { SmtpLoad } from './smtp-load.ts'
import { DaemonFolder, type StartedProcess } from './started-daemon.ts'

/** Share of the messages after which the deletion is cut. */
const CUT_AT = 0.3
/** Patience with a large queue on a busy machine, in ms. */
const PATIENCE = 120_000

const DESTINATION = 'backlog.example'

const grouped = (value: number): string => value.toLocaleString('en')
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

interface ShownOperation {
  readonly id: number
  readonly action: string
  readonly state: string
  readonly changed: number
}

export class PageDeletion {
  readonly #messages: number
  readonly #folder = new DaemonFolder()
  readonly #load = new SmtpLoad()
  #process: StartedProcess | null = null

  constructor(messages: number) {
    this.#messages = messages
  }

  /** Fills the queue, and puts one message more into the trash. */
  async fill(): Promise<void> {
    const { store, close } = await openStore(this.#directory, { threads: false, create: true })
    const backlog = { messages: this.#messages + 1, now: Date.now(), destinationOf: () => DESTINATION, dueIn: () => DAY, bytes: 100 }
    const [first = 0] = await fillBacklog(store, backlog)
    await store.operate([{ message: first, operation: { kind: 'delete', now: Date.now(), purge: false } }])
    await close()
  }

  /** Starts the daemon and logs in at its page. */
  async start(): Promise<PageClient> {
    const [smtp, page] = [await portBelowEphemeral(), await portBelowEphemeral()]
    this.#process = this.#folder.run(['start'], { smtpd_listen: `127.0.0.1:${smtp}`, admin_listen: `127.0.0.1:${page}` })
    await this.#process.prints('queue directory')
    this.#load.port = smtp
    return PageClient.logIn(`http://127.0.0.1:${page}/`, this.#directory)
  }

  /** Submits mail for another destination, so that the deletion leaves most of the machine to it. */
  submitMail(): void {
    this.#load.pace = 50
    this.#load.start(1, () => 'ann@elsewhere.example')
  }

  async kill(): Promise<void> {
    this.#load.port = null
    this.#process?.child.kill('SIGKILL')
    await this.#process?.ended
  }

  /** Begins the deletion; resolves with its id when CUT_AT of the messages are deleted, and with the progress that was shown until then. */
  async cut(page: PageClient): Promise<{ readonly id: number; readonly progress: readonly number[] }> {
    const plan = await page.open(`operations/new?operation=delete&scope=filter&destination=${DESTINATION}`)
    const text = textOf(plan)
    expect(text).toContain(`Delete ${grouped(this.#messages)} messages?`)
    expect(text).toContain('get no notice')
    const button = `Delete ${grouped(this.#messages)} messages`
    const refused = await page.press(plan, button, { typed: '12' })
    expect(textOf(refused)).toContain('The last try changed nothing, because the number was not the number of messages.')
    const last = (await this.#operations(page))[0]?.id ?? 0
    // The answer comes when the operation has ended, after two seconds at most.
    const begun = page.press(refused, button, { typed: String(this.#messages), reason: 'compromised' })
    begun.catch(() => undefined)
    const progress: number[] = []
    for (const deadline = performance.now() + PATIENCE; performance.now() < deadline;) {
      const [newest] = await this.#operations(page)
      if (newest !== undefined && newest.id > last) {
        if (newest.changed !== progress.at(-1)) progress.push(newest.changed)
        if (newest.changed >= CUT_AT * this.#messages) return { id: newest.id, progress }
      }
      await pause(5)
    }
    throw new Error(`the deletion did not get to ${CUT_AT * this.#messages} messages`)
  }

  /** The operation as the page shows it, with the number of messages that it has changed. */
  async result(page: PageClient, id: number): Promise<{ readonly screen: PageScreen; readonly text: string; readonly changed: number }> {
    const screen = await page.open(`operations/${id}?back=messages`)
    const text = textOf(screen)
    const { changed } = (await page.json(`operations/${id}`)) as ShownOperation
    expect(text).toContain(`${grouped(changed)} messages were moved to the trash before that.`)
    return { screen, text, changed }
  }

  /** Undoes an operation at its screen, and waits for the end of the undo. */
  async undo(page: PageClient, screen: PageScreen, changed: number): Promise<void> {
    let undone = await page.press(screen, 'Undo')
    await until('undone', PATIENCE, async () => {
      undone = await page.open(undone.place)
      return textOf(undone).includes(`${grouped(changed)} messages were restored.`)
    })
    expect(undone.place).toContain('back=messages')
  }

  /** Ids of the messages in the trash. */
  async trash(): Promise<readonly number[]> {
    const reader = openQueueReader(this.#directory)
    try {
      return (await reader.find({ ...ANY_MESSAGE, queue: 'trash' }, { after: 0, limit: this.#messages + 1 })).map(({ id }) => id)
    } finally {
      await reader.close()
    }
  }

  /** The audit log, the last operation first: `restore done 320`. */
  async audit(page: PageClient): Promise<readonly string[]> {
    return (await this.#operations(page)).map(({ action, state, changed }) => `${action} ${state} ${changed}`)
  }

  async close(): Promise<void> {
    await this.#load.close()
    await this.#folder.close()
  }

  get #directory(): string {
    return join(this.#folder.path, 'queue')
  }

  async #operations(page: PageClient): Promise<readonly ShownOperation[]> {
    return ((await page.json('audit')) as { readonly records: readonly ShownOperation[] }).records
  }
}

/**
 * A deletion that is cancelled, and one that SIGKILL ends, both at CUT_AT: the audit log has their exact counts, and their undo restores
 * exactly their messages. Returns the counts that were shown while the first one ran.
 */
export async function cutDeletions(messages: number): Promise<readonly number[]> {
  const deletion = new PageDeletion(messages)
  try {
    await deletion.fill()
    const apart = await deletion.trash()
    expect(apart).toHaveLength(1)
    const before = await deletion.start()
    deletion.submitMail()

    const { id, progress } = await deletion.cut(before)
    expect(progress).toEqual(progress.toSorted((a, b) => a - b))
    await before.press(await before.open(`operations/${id}`), 'Cancel')
    const cancelled = await deletion.result(before, id)
    expect(cancelled.text).toContain('Cancelled.')
    expect(cancelled.changed).toBeLessThan(messages)
    expect(await deletion.trash()).toHaveLength(apart.length + cancelled.changed)
    await deletion.undo(before, cancelled.screen, cancelled.changed)
    expect(await deletion.trash()).toEqual(apart)

    const second = await deletion.cut(before)
    await deletion.kill()
    const after = await deletion.start()
    const killed = await deletion.result(after, second.id)
    expect(killed.text).toMatch(/Failed: .*ended/)
    expect(killed.changed).toBeGreaterThanOrEqual(CUT_AT * messages)
    expect(await deletion.trash()).toHaveLength(apart.length + killed.changed)
    await deletion.undo(after, killed.screen, killed.changed)
    expect(await deletion.trash()).toEqual(apart)
    expect(await deletion.audit(after)).toEqual([
      `restore done ${killed.changed}`,
      `delete failed ${killed.changed}`,
      `restore done ${cancelled.changed}`,
      `delete cancelled ${cancelled.changed}`,
    ])
    return progress
  } finally {
    await deletion.close()
  }
}
