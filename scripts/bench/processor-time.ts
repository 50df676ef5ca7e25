/**
 * CPU time of a process and all its descendants, out of Linux' /proc: user and system time of all their threads, and
 * of their children that have ended and were waited for.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** USER_HZ: ticks in a second as /proc counts them, 100 on all of Linux' usual platforms. */
const TICKS_PER_SECOND = 100

export interface ProcessTimes {
  readonly pid: number
  readonly parent: number
  /** utime + stime + cutime + cstime (proc_pid_stat(5)). */
  readonly ticks: number
}

/** Reads a line of /proc/PID/stat; null if it is none. The name in parentheses may contain anything. */
export function parseStat(line: string): ProcessTimes | null {
  const pid = Number.parseInt(line, 10)
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const parent = Number(fields[1])
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
  return fields.length > 15 && Number.isInteger(pid + parent + ticks) ? { pid, parent, ticks } : null
}

/** Ticks of a process and its descendants; null if the process is gone. */
export function ticksOfTree(root: number, processes: readonly ProcessTimes[]): number | null {
  const children = Map.groupBy(processes, ({ parent }) => parent)
  const first = processes.find(({ pid }) => pid === root)
  if (first === undefined) return null
  const family = [first]
  for (const { pid } of family) family.push(...(children.get(pid) ?? []))
  return family.reduce((sum, { ticks }) => sum + ticks, 0)
}

/** CPU seconds of a process and its descendants. */
export function processorSeconds(root: number): number {
  const ticks = ticksOfTree(root, runningProcesses())
  if (ticks === null) throw new Error(`process ${root} is gone, so its CPU time cannot be read`)
  return ticks / TICKS_PER_SECOND
}

/** VmRSS of a process in MB. */
export const residentOf = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024

/** CPU time so far, in ticks. */
export interface Use {
  /** Of a process and its descendants. */
  readonly own: number
  /** Of all processes and the kernel. */
  readonly busy: number
  /** Of all processors, idle time included. */
  readonly total: number
}

export const readUse = (root: number): Use => ({
  own: processorSeconds(root) * TICKS_PER_SECOND,
  ...parseUse(readFileSync('/proc/stat', 'utf8')),
})

/** Reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5)). */
export function parseUse(text: string): Pick<Use, 'busy' | 'total'> {
  const ticks = (/^cpu +(.*)/.exec(text)?.[1] ?? '').split(' ').slice(0, 8).map(Number)
  const total = ticks.reduce((sum, part) => sum + part, 0)
  return { total, busy: total - (ticks[3] ?? 0) - (ticks[4] ?? 0) }
}

/** The part of all CPU time between two looks that other programs and the kernel took, 0 to 1. */
export function shareOfOthers(before: Use, after: Use): number {
  const total = after.total - before.total
  return total <= 0 ? 0 : Math.max(0, after.busy - before.busy - (after.own - before.own)) / total
}

function runningProcesses(): ProcessTimes[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => readStat(pid) ?? [])
}

function readStat(pid: string): ProcessTimes | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    // A process can end between the listing and the reading.
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT' || code === 'ESRCH') return null
    throw error
  }
}
