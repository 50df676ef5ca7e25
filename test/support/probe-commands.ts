/** Results of several clients in several rounds, in the form of the tables of faults. */
export function inWords(rounds: readonly (readonly string[])[], kept: number): string {
  const told = rounds.map(roundInWords)
  const [first] = told
  const same = told.length > 1 && told.every((words) => words === first)
  const delivered = rounds.flat().filter((words) => words.startsWith('delivered')).length
  const surprise = kept === delivered ? '' : ` (${kept} in the mailbox)`
  return `${same ? `each time: ${first ?? ''}` : told.join(' · ')}${surprise}`
}

const roundInWords = (clients: readonly string[]): string =>
  clients.length > 1 && clients.every((words) => words === clients[0]) ? `all: ${clients[0] ?? ''}` : clients.join(' + ')
