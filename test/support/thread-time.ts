/**
 * Processor time of this thread in ms: the part of a wait that the code under test causes. Wall-clock time also grows with the other
 * work of the machine.
 */
export function threadTime(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
