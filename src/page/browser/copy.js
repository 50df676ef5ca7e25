/** Buttons that copy a text: of commands, and of ids. A browser without a clipboard, such as on plain HTTP to another machine, has none. */

/** Time for which a button says that it has copied, in ms. */
const SAID = 2_000

/** @param {Element} text */
function addButton(text) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy plain'
  button.textContent = 'Copy'
  button.setAttribute('aria-label', `Copy ${text.getAttribute('data-copy') || text.textContent || ''}`)
  button.addEventListener('click', () => {
    void navigator.clipboard.writeText(text.textContent ?? '').then(
      () => (button.textContent = 'Copied'),
      () => (button.textContent = 'Not permitted'),
    )
    setTimeout(() => (button.textContent = 'Copy'), SAID)
  })
  text.after(' ', button)
}

/**
 * Adds the buttons of a part of the screen.
 * @param {ParentNode} part
 */
export function addCopying(part) {
  if (navigator.clipboard === undefined) return
  for (const text of part.querySelectorAll('.as-command code, h1 .id, [data-copy]')) addButton(text)
}
