//! The expressions of `\set`: numbers, variables, operators and functions, with pgbench's names and meaning.

use crate::dice::{Dice, Distribution};
use crate::statement::Value;

/// Something that has a value.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    Constant(Value),
    Variable(usize),
    Negative(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    Call(Function, Vec<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Random,
    RandomGaussian,
    RandomExponential,
    RandomZipfian,
    Abs,
    Least,
    Greatest,
    Mod,
    Hash,
    Int,
    Double,
    /// Text of so many random letters. Not pgbench's.
    RandomString,
    /// Text of so many random digits. Not pgbench's.
    RandomDigits,
}

/// Letters of a random text at most.
const TEXT_BYTES_MAX: i64 = 60_000;

impl Function {
    pub(super) fn by_name(name: &str) -> Option<(Function, std::ops::RangeInclusive<usize>)> {
        Some(match name {
            "random" => (Function::Random, 2..=2),
            "random_gaussian" => (Function::RandomGaussian, 3..=3),
            "random_exponential" => (Function::RandomExponential, 3..=3),
            "random_zipfian" => (Function::RandomZipfian, 3..=3),
            "abs" => (Function::Abs, 1..=1),
            "least" => (Function::Least, 1..=64),
            "greatest" => (Function::Greatest, 1..=64),
            "mod" => (Function::Mod, 2..=2),
            "hash" => (Function::Hash, 1..=2),
            "int" => (Function::Int, 1..=1),
            "double" => (Function::Double, 1..=1),
            "random_string" => (Function::RandomString, 1..=1),
            "random_digits" => (Function::RandomDigits, 1..=1),
            _ => return None,
        })
    }
}

/// Text that is a number becomes one.
pub(super) fn as_number(value: &Value) -> Value {
    match value {
        Value::Text(text) => match (value.as_int(), value.as_f64()) {
            (Some(n), _) => Value::Int(n),
            (None, Some(n)) if n.is_finite() => Value::Number(text.clone()),
            (None, _) => value.clone(),
        },
        Value::Int(_) | Value::Number(_) | Value::Null => value.clone(),
    }
}

fn double(n: f64) -> Value {
    if n.is_finite() { Value::Number(format!("{n}").into_bytes()) } else { Value::Null }
}

impl Expression {
    /// Its value; NULL when it cannot be computed.
    pub(super) fn value(&self, variables: &[Option<Value>], dice: &mut Dice) -> Value {
        match self {
            Expression::Constant(value) => value.clone(),
            Expression::Variable(n) => variables.get(*n).cloned().flatten().unwrap_or(Value::Null),
            Expression::Negative(of) => match of.value(variables, dice) {
                Value::Int(n) => n.checked_neg().map_or(Value::Null, Value::Int),
                other => other.as_f64().map_or(Value::Null, |n| double(-n)),
            },
            Expression::Binary(operator, a, b) => {
                let (a, b) = (a.value(variables, dice), b.value(variables, dice));
                operator.apply(&a, &b)
            }
            Expression::Call(function, of) => {
                let of: Vec<Value> = of.iter().map(|one| one.value(variables, dice)).collect();
                function.apply(&of, dice)
            }
        }
    }
}

impl Operator {
    fn apply(self, a: &Value, b: &Value) -> Value {
        if let (Value::Int(a), Value::Int(b)) = (a, b) {
            let found = match self {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                Operator::Divide => a.checked_div(*b),
                Operator::Remainder => a.checked_rem(*b),
            };
            return found.map_or(Value::Null, Value::Int);
        }
        let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else { return Value::Null };
        double(match self {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
            Operator::Remainder => a % b,
        })
    }
}

impl Function {
    fn apply(self, of: &[Value], dice: &mut Dice) -> Value {
        let int = |n: usize| of.get(n).and_then(Value::as_int);
        let real = |n: usize| of.get(n).and_then(Value::as_f64);
        let range = || Some((int(0)?, int(1)?)).filter(|(low, high)| low <= high);
        let found = match self {
            Function::Random => range().map(|(low, high)| dice.uniform(low, high)),
            Function::RandomZipfian => range().zip(real(2)).map(|((low, high), exponent)| {
                Distribution::Zipfian { exponent: exponent.max(1e-3) }.draw(dice, low, high)
            }),
            Function::RandomGaussian => {
                range().zip(real(2)).map(|((low, high), parameter)| gaussian(dice, low, high, parameter))
            }
            Function::RandomExponential => {
                range().zip(real(2)).map(|((low, high), parameter)| exponential(dice, low, high, parameter))
            }
            Function::Mod => return Operator::Remainder.apply(&of[0], &of[1]),
            Function::Hash => int(0).map(|n| crate::dice::mix(n as u64, int(1).unwrap_or(0) as u64) as i64),
            Function::Int => real(0).map(|n| n as i64),
            Function::Double => return real(0).map_or(Value::Null, double),
            Function::Abs => match &of[0] {
                Value::Int(n) => n.checked_abs(),
                other => return other.as_f64().map_or(Value::Null, |n| double(n.abs())),
            },
            Function::Least | Function::Greatest => {
                let sign = if self == Function::Least { 1.0 } else { -1.0 };
                let key = |v: &&Value| v.as_f64().map_or(f64::INFINITY, |n| n * sign);
                return of.iter().min_by(|a, b| key(a).total_cmp(&key(b))).cloned().unwrap_or(Value::Null);
            }
            Function::RandomString | Function::RandomDigits => {
                let (first, last) = if self == Function::RandomString { (b'a', 25) } else { (b'0', 9) };
                let length = int(0).unwrap_or(0).clamp(0, TEXT_BYTES_MAX);
                return Value::Text((0..length).map(|_| first + dice.uniform(0, last) as u8).collect());
            }
        };
        found.map_or(Value::Null, Value::Int)
    }
}

/// pgbench's: the interval cut into two halves of `parameter` standard deviations each.
fn gaussian(dice: &mut Dice, low: i64, high: i64, parameter: f64) -> i64 {
    // Box-Muller, again until it falls into the interval; the bound only keeps a bad parameter from looping.
    for _ in 0..1000 {
        let (a, b) = (1.0 - dice.unit(), dice.unit());
        let deviation = (-2.0 * a.ln()).sqrt() * (2.0 * std::f64::consts::PI * b).sin();
        if deviation.abs() < parameter {
            let share = (deviation + parameter) / (parameter * 2.0);
            return low + ((high - low + 1) as f64 * share) as i64;
        }
    }
    low + (high - low) / 2
}

/// pgbench's: an exponential distribution cut off at `parameter`.
fn exponential(dice: &mut Dice, low: i64, high: i64, parameter: f64) -> i64 {
    let cut = (-parameter).exp();
    let share = -(cut + (1.0 - cut) * (1.0 - dice.unit())).ln() / parameter;
    low + ((high - low + 1) as f64 * share.clamp(0.0, 1.0 - 1e-12)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_stay_in_their_range() {
        let mut dice = Dice::new(1, 1, 1, 1);
        for name in ["random", "random_gaussian", "random_exponential", "random_zipfian"] {
            let (function, _) = Function::by_name(name).unwrap();
            let mut sum = 0;
            for _ in 0..2_000 {
                let of = [Value::Int(-5), Value::Int(5), Value::Number(b"2.5".to_vec())];
                let n = function.apply(&of, &mut dice).as_int().unwrap();
                assert!((-5..=5).contains(&n), "{name}: {n}");
                sum += n;
            }
            let skewed = matches!(name, "random_exponential" | "random_zipfian");
            assert_eq!(sum < -2_000, skewed, "{name}: {sum}");
        }
        let of = [Value::Int(5), Value::Int(1)];
        assert_eq!(Function::Random.apply(&of, &mut dice), Value::Null);
    }

    #[test]
    fn arithmetic() {
        let (seven, two, half) = (Value::Int(7), Value::Int(2), Value::Number(b"0.5".to_vec()));
        assert_eq!(Operator::Divide.apply(&seven, &two), Value::Int(3));
        assert_eq!(Operator::Multiply.apply(&seven, &half), Value::Number(b"3.5".to_vec()));
        assert_eq!(Operator::Divide.apply(&seven, &Value::Int(0)), Value::Null);
        assert_eq!(Operator::Add.apply(&Value::Int(i64::MAX), &two), Value::Null);
        let mut dice = Dice::new(1, 1, 1, 1);
        assert_eq!(Function::Least.apply(&[seven.clone(), two.clone()], &mut dice), two);
        assert_eq!(Function::Greatest.apply(&[seven.clone(), two], &mut dice), seven);
    }
}
