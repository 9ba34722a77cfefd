"""Forward mode: functions that carry a tangent beside every active value."""
