/**
 * The log of the daemon's process: on standard error, or in log_file. A reload replaces format, names and file; each SIGHUP opens
 * the file again, so that logrotate(8) can move it. Lines for the journal of systemd have no time and no host, because the
 * journal adds them.
 */
import { fstatSync } from 'node:fs'
import { hostname } from 'node:os'
import { systemClock } from '../system/system-clock.ts'
import type { Config } from '../config/options.ts'
import type { Listen } from '../telemetry/events.ts'
import { LogFile, logFileProblem } from '../telemetry/log-file.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import { openLog, type Log } from '../telemetry/log.ts'

type LogConfig = Pick<Config, 'log_format' | 'log_file' | 'syslog_name' | 'smtp_log_tls_feature_status'>

const writeToStderr = (text: string): void => void process.stderr.write(text)

/** True when standard error is the journal: JOURNAL_STREAM holds its device and inode (systemd.exec(5)). */
export function isJournal(stream: string | undefined, fd = 2): boolean {
  if (stream === undefined) return false
  const { dev, ino } = fstatSync(fd)
  return stream === `${dev}:${ino}`
}

type Owner = { readonly uid: number; readonly gid: number } | null

export class ProcessLog {
  readonly #owner: Owner
  readonly #addresses: ToldAddresses
  #config: LogConfig
  #file: LogFile | null = null
  #log: Log

  /** Logs to standard error when log_file cannot be written: the preparation of the start reports that. */
  constructor(config: LogConfig, owner: Owner, addresses: ToldAddresses) {
    this.#config = config
    this.#addresses = addresses
    this.#owner = owner
    this.#log = this.#open()
    process.once('exit', () => this.flush())
  }

  readonly listen: Listen = (event, at) => this.#log.listen(event, at)

  flush(): void {
    this.#log.flush()
  }

  /** Opens log_file again, with the current or a changed configuration. */
  reopen(config: LogConfig = this.#config): void {
    this.#log.flush()
    const former = this.#file
    this.#config = config
    this.#log = this.#open()
    former?.close()
  }

  #open(): Log {
    const { log_file: path, log_format: format, syslog_name: syslogName, smtp_log_tls_feature_status: tlsStatus } = this.#config
    const file = path === '' || logFileProblem(path) !== null ? null : new LogFile(path, writeToStderr, this.#owner)
    this.#file = file
    const [host = 'localhost'] = hostname().split('.')
    const write = file === null ? writeToStderr : (text: string) => file.write(text)
    const stampedByReader = file === null && isJournal(process.env['JOURNAL_STREAM'])
    const addresses = this.#addresses
    return openLog({ format, syslogName, host, pid: process.pid, clock: systemClock, write, stampedByReader, tlsStatus, addresses })
  }
}
