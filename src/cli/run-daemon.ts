/**
 * Runs the daemon in this process, with the log on standard error, socket activation, notification of the service manager, and
 * reload on SIGHUP.
 */
import { errorMessage } from '../system/caught-error.ts'
import type { LoadedConfig } from '../config/load.ts'
import { Account } from '../daemon/account.ts'
import { startDaemon, type Daemon } from '../daemon/daemon.ts'
import { StoreSilent } from '../daemon/upkeep/side-watch.ts'
import { inheritedSockets, InheritedSockets, ServiceManager } from '../daemon/systemd.ts'
import { systemClock } from '../system/system-clock.ts'
import { VERSION } from '../system/version.ts'
import { SystemNet } from '../system/system-net.ts'
import { Events } from '../telemetry/events.ts'
import { ToldAddresses } from '../mail/told-addresses.ts'
import { queueIdOf } from '../mail/message.ts'
import { listenText, placeText } from './shell/addresses.ts'
import { EX } from './shell/exit.ts'
import { ProcessLog } from './process-log.ts'
import type { RunningDaemon } from './shell/shell.ts'

/** Starts the daemon. `readAgain` loads the configuration again at SIGHUP. */
export async function runDaemon(loaded: LoadedConfig, readAgain: () => Promise<LoadedConfig>, user?: string): Promise<RunningDaemon> {
  const { config } = loaded
  const { env, pid } = process
  const addresses = new ToldAddresses(config.log_addresses)
  const log = new ProcessLog(config, user === undefined ? null : Account.named(user), addresses)
  const events = new Events(() => systemClock.now())
  events.listen(log.listen)
  const firstAccepted = firstIn(events)
  const note: Note = (level, text) => events.emit({ kind: 'note', level, text })
  const output = { log, note }
  // After an uncaught exception, the state in memory is unknown, but all acknowledged mail is on disk. The process exits with 70,
  // and the supervisor restarts it.
  process.once('uncaughtException', (error) => {
    note('panic', error.stack ?? String(error))
    log.flush()
    process.exit(EX.software)
  })
  const net = new InheritedSockets(new SystemNet({ dnsServers: config.dns_servers }), inheritedSockets(env, pid))
  const rereads = (started: Daemon): Promise<void> =>
    new Promise((inEffect, refused) => void reload(started, readAgain, output, inEffect).catch(refused))
  const daemon = await startDaemon({ loaded, events, addresses, net, user, rereads })
  void daemon.failed.then(({ exitCode }) => {
    log.flush()
    process.exit(exitCode)
  })
  const manager = new ServiceManager({ env, pid, clock: systemClock, note: (text) => note('warning', text) })
  manager.ready()
  note('info', `daemon started -- ${described(loaded)}`)
  if (config.log_format === 'json') note('info', `${listenText(daemon)}; ${placeText(daemon)}`)
  return {
    described: () => daemon,
    firstAccepted,
    // The log has the failure.
    reload: () => void rereads(daemon).catch(() => undefined),
    stop: () => {
      manager.stopping()
      return stop(daemon, output)
    },
  }
}

type Note = (level: 'info' | 'warning' | 'error' | 'panic', text: string) => void

interface Output {
  readonly log: ProcessLog
  readonly note: Note
}

/** Logs the outcome, and rejects after a failure. `inEffect` is called before the mail is routed. */
async function reload(daemon: Daemon, readAgain: () => Promise<LoadedConfig>, { log, note }: Output, inEffect: () => void): Promise<void> {
  try {
    // The file is opened again whatever the configuration holds, so that it can be rotated.
    log.reopen()
    const changed = await readAgain()
    await daemon.reload(changed, inEffect)
    log.reopen(changed.config)
    note('info', `reload -- ${described(changed)}`)
  } catch (error) {
    for (const line of errorMessage(error).split('\n')) note('error', `reload failed, the old configuration stays in effect: ${line}`)
    throw error
  }
}

async function stop(daemon: Daemon, output: Output): Promise<void> {
  const { log, note } = output
  note('info', 'terminating')
  try {
    await daemon.stop()
    note('info', 'stopped')
  } catch (error) {
    if (error instanceof StoreSilent) endWithout(error, output)
    throw error
  } finally {
    log.flush()
  }
}

/** Ends the process despite a stuck thread: exit() would wait for every thread, also for one in a system call that does not return. */
function endWithout({ isStuck, message, exitCode }: StoreSilent, { log, note }: Output): never {
  if (isStuck) note('error', `${message}; a system call does not return, so that the process ends itself by SIGKILL`)
  log.flush()
  if (isStuck) process.kill(process.pid, 'SIGKILL')
  return process.exit(exitCode)
}

/** Version and configuration, in the words of Postfix's master. */
const described = ({ file }: LoadedConfig): string =>
  `version ${VERSION}, ${file === null ? 'no configuration file' : `configuration ${file}`}`

/** Queue id of the first message that these events report as accepted. */
const firstIn = (events: Events): Promise<string> =>
  new Promise((resolve) => {
    events.listen((event) => {
      if (event.kind === 'accepted') resolve(queueIdOf(event.message))
    })
  })
