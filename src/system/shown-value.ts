/** A value as an error repeats it: numbers as they are, anything else as JSON. */
export const shown = (value: unknown): string => (typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value)))
