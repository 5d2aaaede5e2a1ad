/** Totals of gateways' receipts for a push: devices reached, and devices on which it was opened, each counted once. */
export interface ReceiptTotals {
  delivered: number;
  clicked: number;
}

export const noReceipts: Readonly<ReceiptTotals> = { delivered: 0, clicked: 0 };

/** Adds `more` to `totals` in place and returns it. */
export function addReceipts(totals: ReceiptTotals, more: Readonly<ReceiptTotals>): ReceiptTotals {
  totals.delivered += more.delivered;
  totals.clicked += more.clicked;
  return totals;
}
