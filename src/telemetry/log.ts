/**
 * Writes lines for events to the log (standard error or log_file). Lines are buffered and written together, because each message
 * causes several. `flush` writes the buffer before the process ends.
 */
import type { Clock, Duration, Timers, WallTime } from '../system/clock.ts'
import { civilTime, isoInstant, MONTHS } from '../mail/mail-date.ts'
import { escapeControls, maskControls } from '../mail/smtp-reply.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import type { Listen } from './events.ts'
import { logRecords, postfixLines } from './log-records.ts'

type LogClock = Timers & Pick<Clock, 'zone'>

interface LogOptions {
  readonly format: 'postfix' | 'json'
  /** Program name before the slash in lines of the format `postfix`. */
  readonly syslogName: string
  readonly host: string
  readonly pid: number
  readonly clock: LogClock
  readonly write: (text: string) => void
  /** True when the reader of the log, such as the journal, adds time and host to each line of the format `postfix`. */
  readonly stampedByReader?: boolean | undefined
  /** smtp_log_tls_feature_status; default true. */
  readonly tlsStatus?: boolean | undefined
  /** As they are when absent. */
  readonly addresses?: ToldAddresses | undefined
}

export interface Log {
  readonly listen: Listen
  flush(): void
}

/** In ms. */
const LONGEST_BUFFER_TIME: Duration = 5
/** In characters. A buffer of this size is written at once. */
const BUFFER_SIZE = 64 * 1024
/** Validity of a cached offset from UTC. Offsets change only at full quarters of an hour. */
const ZONE_INTERVAL: Duration = 15 * 60_000

class LineBuffer {
  readonly #clock: LogClock
  readonly #write: (text: string) => void
  #text = ''
  #scheduled = false

  constructor(clock: LogClock, write: (text: string) => void) {
    this.#clock = clock
    this.#write = write
  }

  add(line: string): void {
    this.#text += line
    if (this.#text.length >= BUFFER_SIZE) this.flush()
    else if (!this.#scheduled) {
      this.#scheduled = true
      this.#clock.after(LONGEST_BUFFER_TIME, () => {
        this.#scheduled = false
        this.flush()
      })
    }
  }

  flush(): void {
    const text = this.#text
    this.#text = ''
    if (text !== '') this.#write(text)
  }
}

const two = (value: number): string => String(value).padStart(2, '0')

/** Time in the format of syslog, `Nov 20 10:00:00` (RFC 3164 §4.1.2). Cached for a second. */
class SyslogTime {
  readonly #clock: LogClock
  #second = NaN
  #text = ''
  #quarter = NaN
  #offset = 0

  constructor(clock: LogClock) {
    this.#clock = clock
  }

  at(instant: WallTime): string {
    const second = Math.floor(instant / 1000)
    if (second === this.#second) return this.#text
    const quarter = Math.floor(instant / ZONE_INTERVAL)
    if (quarter !== this.#quarter) {
      this.#quarter = quarter
      this.#offset = this.#clock.zone(instant).offset
    }
    const { month, day, hour, minute, second: seconds } = civilTime(instant, this.#offset)
    this.#second = second
    this.#text = `${MONTHS[month - 1] ?? ''} ${String(day).padStart(2)} ${two(hour)}:${two(minute)}:${two(seconds)}`
    return this.#text
  }
}

function postfixListener(
  { syslogName, host, pid, clock, stampedByReader = false, tlsStatus, addresses }: LogOptions,
  buffer: LineBuffer,
): Listen {
  const time = new SyslogTime(clock)
  return (event, at) => {
    for (const { program, text } of postfixLines(event, { tlsStatus }, addresses)) {
      const stamp = stampedByReader ? '' : `${time.at(at)} ${host} `
      buffer.add(`${stamp}${syslogName}/${program}[${pid}]: ${maskControls(text)}\n`)
    }
  }
}

function jsonListener({ syslogName, host, pid, addresses }: LogOptions, buffer: LineBuffer): Listen {
  return (event, at) => {
    const time = isoInstant(at)
    for (const { level, members } of logRecords(event, addresses)) {
      buffer.add(`${escapeControls(JSON.stringify({ level, time, program: syslogName, host, pid, ...members }))}\n`)
    }
  }
}

export function openLog(options: LogOptions): Log {
  const buffer = new LineBuffer(options.clock, options.write)
  const listen = options.format === 'json' ? jsonListener(options, buffer) : postfixListener(options, buffer)
  return { listen, flush: () => buffer.flush() }
}
