/**
 * CPU time and memory of a process and all its descendants, from /proc on Linux. CPU time is user and system time of all their
 * threads, and of their children that have ended and were waited for.
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

/** A process and its descendants; empty if the process is gone. */
function treeOf(root: number, processes: readonly ProcessTimes[]): readonly ProcessTimes[] {
  const children = Map.groupBy(processes, ({ parent }) => parent)
  const tree = processes.filter(({ pid }) => pid === root)
  for (const { pid } of tree) tree.push(...(children.get(pid) ?? []))
  return tree
}

/** Ticks of a process and its descendants; null if the process is gone. */
export function ticksOfTree(root: number, processes: readonly ProcessTimes[]): number | null {
  const tree = treeOf(root, processes)
  return tree.length === 0 ? null : tree.reduce((sum, { ticks }) => sum + ticks, 0)
}

/** RSS of a process and its descendants, in MB. A page that several of them share counts in each. */
export const residentOfTree = (root: number): number => treeOf(root, runningProcesses()).reduce((sum, { pid }) => sum + residentOf(pid), 0)

/** CPU seconds of a process and its descendants. */
export function processorSeconds(root: number): number {
  const ticks = ticksOfTree(root, runningProcesses())
  if (ticks === null) throw new Error(`process ${root} is gone, so its CPU time cannot be read`)
  return ticks / TICKS_PER_SECOND
}

/** VmRSS of a process in MB; 0 when it is gone. */
export const residentOf = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(readProcess(pid, 'status'))?.[1] ?? 0) / 1_024

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
  return parseStat(readProcess(Number(pid), 'stat'))
}

/** A file of a process; empty when the process is gone, as it can be after a listing. */
function readProcess(pid: number, file: 'stat' | 'status'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT' || code === 'ESRCH') return ''
    throw error
  }
}
