/** The delay of the event loop of a daemon, from its /metrics. */

/** The 99th percentile since the last call, in ms, with the 10 ms between two looks. Throws when the port does not answer with it. */
export async function takeLoopDelay(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  const seconds = /^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(await response.text())?.[1]
  if (seconds === undefined) throw new Error(`/metrics was answered with ${response.status}, without nodejs_eventloop_lag_p99_seconds`)
  return Number(seconds) * 1_000
}
