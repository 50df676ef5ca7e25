/** Time of CLOCK_MONOTONIC in ms, which is the same in all processes of the machine. */
export const monotonic = (): number => Number(process.hrtime.bigint()) / 1e6
