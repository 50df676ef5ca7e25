/**
 * The log: events go in, lines come out on standard error. It is on the path of every message, so lines are gathered
 * and written together; what is gathered when the process ends is written by `flush`.
 */
import { pino, type Logger } from 'pino'
import type { Clock, Duration, Instant } from '../mail/clock.ts'
import { civilTime, isoInstant, MONTHS } from '../mail/mail-date.ts'
import { harmless } from '../mail/reply.ts'
import type { Listen, QueueEvent } from './events.ts'
import { logRecords } from './log-records.ts'
import { postfixLines } from './postfix-lines.ts'

export interface LogOptions {
  readonly format: 'postfix' | 'json'
  /** The program name in Postfix-shaped lines, before the slash. */
  readonly syslogName: string
  readonly host: string
  readonly pid: number
  readonly clock: Clock
  readonly write: (text: string) => void
}

export interface Log {
  readonly listen: Listen
  /** Writes what was gathered, now. */
  flush(): void
}

/** How long a line may be held back to be written together with others. */
const GATHER: Duration = 5
/** Characters above which gathered lines are written at once. */
const ENOUGH = 64 * 1024
/** Zones change at full quarters of an hour, so an offset holds until the next one. */
const ZONE_HOLDS: Duration = 15 * 60_000

class Gatherer {
  readonly #clock: Clock
  readonly #write: (text: string) => void
  #text = ''
  #waiting = false

  constructor(clock: Clock, write: (text: string) => void) {
    this.#clock = clock
    this.#write = write
  }

  add(line: string): void {
    this.#text += line
    if (this.#text.length >= ENOUGH) this.flush()
    else if (!this.#waiting) {
      this.#waiting = true
      this.#clock.after(GATHER, () => {
        this.#waiting = false
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

/** The time as syslog writes it, `Nov 20 10:00:00`; the same text for a whole second. */
class SyslogTime {
  readonly #clock: Clock
  #second = NaN
  #text = ''
  #quarter = NaN
  #offset = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  at(instant: Instant): string {
    const second = Math.floor(instant / 1000)
    if (second === this.#second) return this.#text
    const quarter = Math.floor(instant / ZONE_HOLDS)
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

function postfixListener({ syslogName, host, pid, clock }: LogOptions, gatherer: Gatherer): Listen {
  const time = new SyslogTime(clock)
  return (event, at) => {
    for (const { program, text } of postfixLines(event)) {
      gatherer.add(`${time.at(at)} ${host} ${syslogName}/${program}[${pid}]: ${harmless(text)}\n`)
    }
  }
}

/** Control characters that JSON lets stand for themselves. */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const UNESCAPED = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

function jsonListener({ syslogName, host, pid }: LogOptions, gatherer: Gatherer): Listen {
  let at: Instant = 0
  const logger: Logger = pino(
    {
      base: { program: syslogName, host, pid },
      messageKey: 'text',
      timestamp: () => `,"time":"${isoInstant(at)}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (text) => gatherer.add(text.replace(UNESCAPED, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)) },
  )
  return (event: QueueEvent, when: Instant) => {
    at = when
    for (const { level, members } of logRecords(event)) logger[level](members)
  }
}

export function openLog(options: LogOptions): Log {
  const gatherer = new Gatherer(options.clock, options.write)
  const listen = options.format === 'json' ? jsonListener(options, gatherer) : postfixListener(options, gatherer)
  return { listen, flush: () => gatherer.flush() }
}
