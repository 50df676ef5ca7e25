/**
 * The daemon as a process runs it: with its log on standard error, the sockets and the ear of the service manager, and
 * SIGHUP.
 */
import { hostname } from 'node:os'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/options.ts'
import { startDaemon } from '../daemon/daemon.ts'
import { inheritedSockets, ServiceManager, withInheritedSockets } from '../daemon/systemd.ts'
import { systemClock } from '../system/clock.ts'
import { SystemNet } from '../system/net.ts'
import { Events } from '../telemetry/events.ts'
import { openLog, type Log } from '../telemetry/log.ts'
import { EX, type RunningDaemon } from './shell.ts'

/** The log on standard error; what is gathered when the process ends is written then. */
function openProcessLog(config: Config): Log {
  const [host = 'localhost'] = hostname().split('.')
  const log = openLog({
    format: config.log_format,
    syslogName: config.syslog_name,
    host,
    pid: process.pid,
    clock: systemClock,
    write: (text) => void process.stderr.write(text),
  })
  process.once('exit', () => log.flush())
  return log
}

/** Starts the daemon; `readAgain` is how SIGHUP reads the configuration. */
export async function startLoggedDaemon(loaded: LoadedConfig, readAgain: () => Promise<LoadedConfig>): Promise<RunningDaemon> {
  const { config } = loaded
  const { env, pid } = process
  const log = openProcessLog(config)
  const events = new Events(() => systemClock.now())
  events.listen(log.listen)
  const tell = (level: 'warning' | 'error' | 'panic', text: string) => events.emit({ kind: 'note', level, text })
  // A bug: nothing is known of the state any more, but all that was promised is on disk. A supervisor starts us again.
  process.once('uncaughtException', (error) => {
    tell('panic', error.stack ?? String(error))
    log.flush()
    process.exit(EX.software)
  })
  const net = withInheritedSockets(new SystemNet(), inheritedSockets(env, pid))
  const daemon = await startDaemon({ loaded, events, net })
  const manager = new ServiceManager({ env, pid, clock: systemClock, note: (text) => tell('warning', text) })
  manager.ready()
  const reload = async () => {
    try {
      await daemon.reload(await readAgain())
    } catch (error) {
      for (const line of (error as Error).message.split('\n')) tell('error', `the old configuration stays: ${line}`)
    }
  }
  return {
    described: () => daemon,
    reload: () => void reload(),
    stop: async () => {
      manager.stopping()
      await daemon.stop()
      log.flush()
    },
  }
}
