/** Reads properties of a caught value, whose type is unknown to TypeScript. */

export const errorMessage = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** The code of a system error (`ENOENT`, `ECONNREFUSED` …); empty for other values. */
export const errorCode = (cause: unknown): string =>
  cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''

/** The exit code that an error carries (sysexits(3)); undefined when it has none. */
export const errorExitCode = (cause: unknown): number | undefined =>
  cause instanceof Error && 'exitCode' in cause && typeof cause.exitCode === 'number' ? cause.exitCode : undefined
