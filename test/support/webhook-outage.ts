/** A daemon under load whose receiver of webhooks is away, and which is killed meanwhile. */
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { join } from 'node:path'
import { until } from './node-cluster.ts'
import { portBelowEphemeral } from './ports.ts'
import { RemoteLedger } from './remote-ledger.ts'
import { SmtpLoad } from './smtp-load.ts'
import { DaemonFolder, type StartedProcess } from './started-daemon.ts'
import { webhookAccount, type WebhookAccount } from './webhook-account.ts'
import { WebhookLedger } from './webhook-ledger.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Recipients of a message: some are refused, some deferred at first. */
const recipientsOf = (number: number): readonly string[] => [
  `user-${number}@far.example`,
  ...(number % 5 === 0 ? [`refuse-${number}@far.example`] : []),
  ...(number % 7 === 0 ? [`defer-${number}@far.example`] : []),
]

export interface WebhookOutage extends WebhookAccount {
  readonly kills: number
  readonly acknowledged: number
  /** Seconds for which the receiver was away. */
  readonly away: number
  /** Seconds from its return until it had all events. */
  readonly caughtUpIn: number
}

/** The receiver is away for `away` ms, with so many kills of the daemon at equal distances. */
export async function webhookOutage({ away, kills }: { readonly away: number; readonly kills: number }): Promise<WebhookOutage> {
  const [folder, far, ledger, load] = [new DaemonFolder(), new RemoteLedger(), new WebhookLedger(), new SmtpLoad()]
  const port = await portBelowEphemeral()
  const settings = {
    relayhost: `[127.0.0.1]:${await far.listen()}`,
    smtpd_listen: `127.0.0.1:${port}`,
    minimal_backoff_time: '2s',
    queue_run_delay: '0',
  }
  const start = async (): Promise<StartedProcess> => {
    const process = folder.run(['start'], settings)
    await process.prints('queue directory')
    return process
  }
  const says = async (...command: readonly string[]): Promise<string> => {
    const { code, out, err } = await folder.run(command, settings).ended
    if (code !== 0) throw new Error(`deferd ${command.join(' ')} ended with ${code}: ${err}`)
    return out
  }
  try {
    let daemon = await start()
    const url = `http://127.0.0.1:${await ledger.listen()}/`
    ledger.trust((await says('webhook', 'add', 'app', url, '--allow-private')).trim())
    load.port = port
    load.pace = 40
    load.start(4, recipientsOf)
    await pause(3_000)
    await ledger.close()
    const begun = performance.now()
    for (let kill = 1; kill <= kills; kill++) {
      await pause(Math.max(0, (away * kill) / (kills + 1) - (performance.now() - begun)))
      daemon.child.kill('SIGKILL')
      await daemon.ended
      daemon = await start()
    }
    await pause(Math.max(0, away - (performance.now() - begun)))
    await ledger.listen()
    const back = performance.now()
    await pause(2_000)
    await load.close()
    await until('empty', 120_000, async () => (await says('queue', 'list', '--count')).trim() === '0')
    await until('caught up', 300_000, async () => (JSON.parse(await says('webhook', 'list', '--json')) as { behind: number }).behind === 0)
    const caughtUpIn = Math.round((performance.now() - back) / 1000)
    daemon.child.kill('SIGTERM')
    await daemon.ended
    const reader = openQueueReader(join(folder.path, 'queue'))
    try {
      const account = await webhookAccount(ledger, reader)
      return { ...account, kills, acknowledged: load.acknowledged.size, away: away / 1000, caughtUpIn }
    } finally {
      await reader.close()
    }
  } finally {
    await load.close()
    await ledger.close()
    await folder.close()
    await far.close()
  }
}
