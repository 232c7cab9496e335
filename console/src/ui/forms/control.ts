/** The look of a control in which something is written or chosen: one border and one height. */
export const control =
  'min-h-8 w-full rounded-md border border-edge bg-panel px-2.5 py-1 max-sm:min-h-10 text-base leading-5 text-text placeholder:text-soft ' +
  'aria-invalid:border-bad data-[invalid]:border-bad disabled:bg-quiet disabled:text-soft data-[disabled]:bg-quiet data-[disabled]:text-soft'
